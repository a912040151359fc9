// hearth tokenize: the ids of each line of a text, one JSON array a line; or the samples of --data.
#include "commands/commands.h"
#include "commands/output.h"
#include "commands/tokenize_rows.h"
#include "data/tokenizer/tokenizer.h"

namespace hearth {
namespace {

std::string array_text(const std::vector<int32_t>& ids) {
  std::string text = "[";
  for (const int32_t id : ids) text += (text.size() == 1 ? "" : ", ") + std::to_string(id);
  return text + "]";
}

}  // namespace

ExitCode run_tokenize(const Options& options) {
  if (!options.data.empty()) {
    print_samples(options);
    return ExitCode::done;
  }
  const Tokenizer tokenizer(options.model, options.follow_links);
  bool first = true;
  if (options.json) print("[");
  encode_lines(tokenizer, options.operand.empty() ? "-" : options.operand, !options.no_special,
               [&](const Encoding& encoding) {
                 if (options.json && !first) print(",\n");
                 print(array_text(encoding.ids));
                 if (!options.json) print("\n");
                 first = false;
               });
  if (options.json) print("]\n");
  return ExitCode::done;
}

}  // namespace hearth
