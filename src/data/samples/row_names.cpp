#include "data/samples/row_names.h"

#include <string_view>

#include "data/rows/byte_stream.h"

namespace hearth {

bool names_rows(std::string name) {
  if (name.starts_with('.')) return false;
  if (name == "dataset_info.json" || name == "dataset_infos.json" || name == "state.json") {
    return false;
  }
  const std::string packing = extension_of(name);
  if (is_packing(packing)) name.resize(name.size() - packing.size());
  const std::string ending = extension_of(name);
  if (ending.empty()) return false;
  const std::string all = std::string(kRowEndings) + " ";
  return all.find(ending + " ") != std::string::npos;
}

}  // namespace hearth
