#include "peft/readers.h"

namespace hearth {

std::vector<std::string> reader_notes(const ParameterTable& table, AdapterLayout layout) {
  bool experts = false, router = false, parameters = false;
  for (const Block& block : table.blocks()) {
    if (block.kind != BlockKind::adapter) continue;
    const BlockKind of = table.block(block.base).kind;
    experts = experts || of == BlockKind::expert;
    router = router || of == BlockKind::router;
    parameters = parameters || of == BlockKind::shared || of == BlockKind::dense;
  }
  std::vector<std::string> lines = {"checked with PEFT 0.20.0 and 0.21.2 on transformers 5.23.0"};
  if (experts && layout == AdapterLayout::fused) {
    lines.push_back("PEFT before 0.19.1 does not load its experts");
  } else if (experts) {
    lines.push_back(
        "PEFT before 0.19 on transformers 5 loses its experts with no more than a warning");
  }
  if (parameters) {
    lines.push_back(
        "shared experts and dense layers stand in target_parameters: moved to target_modules, PEFT "
        "loses them (issue 3711)");
  }
  if (router) lines.push_back("PEFT before 0.19 does not load a router");
  return lines;
}

}  // namespace hearth
