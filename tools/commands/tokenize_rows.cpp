#include "commands/tokenize_rows.h"

#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "base/counted.h"
#include "base/json.h"
#include "checkpoint/model_files.h"
#include "commands/output.h"
#include "data/rows/row_intake.h"
#include "data/rows/rows.h"
#include "data/rows/sample_view.h"
#include "data/samples/data_files.h"
#include "setup/row_requests.h"

namespace hearth {
namespace {

// As text at once: a row may have tens of millions of ids.
template <class T>
std::string array_of(const std::vector<T>& values) {
  std::string text = "[";
  for (const T value : values) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(value);
  }
  return text + "]";
}

TrainedMarks marks_of_stdout() {
  const char* term = std::getenv("TERM");
  const bool colour = isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr &&
                      term != nullptr && std::string_view(term) != "dumb";
  return colour ? TrainedMarks{"\x1b[32m", "\x1b[0m"} : TrainedMarks{};
}

}  // namespace

void print_samples(const Options& options) {
  RowReader reader(paths_of(find_data_files(options.data, "--data", false)), row_options(options));
  std::optional<Tokenizer> tokenizer;  // rows of ids need none
  if (!options.json && has_model_file(options.model, "tokenizer.json")) {
    tokenizer.emplace(options.model, options.follow_links);
  }
  const TrainedMarks marks = marks_of_stdout();
  Sample sample;
  while (reader.next(sample)) {
    const RowTotals& totals = reader.totals();
    const int64_t row = totals.rows + totals.dropped + totals.bad;
    const std::vector<uint8_t> trained = sample.trained();
    if (options.json) {
      print("{\"row\": " + std::to_string(row) + ", \"text\": " + Json(sample.text).dump() +
            ", \"ids\": " + array_of(sample.ids) + ", \"trained\": " + array_of(trained) + "}\n");
      continue;
    }
    print("--- row " + std::to_string(row) + ", " + sample.file + ":" +
          std::to_string(sample.line) + ": " + counted(std::ssize(sample.ids), "token") + ", " +
          std::to_string(count_trained(sample.labels)) + " trained\n");
    print((tokenizer ? marked_text(*tokenizer, sample.ids, trained, marks)
                     : marked_ids(sample.ids, trained, marks)) +
          "\n");
  }
  if (reader.totals().rows == 0) require_trained_rows(reader.totals(), options.data);
}

}  // namespace hearth
