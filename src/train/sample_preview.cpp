#include "train/sample_preview.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/counted.h"
#include "base/one_line.h"
#include "checkpoint/model_files.h"
#include "data/chat/mask.h"
#include "data/rows/sample_view.h"

namespace hearth {
namespace {

constexpr size_t kMostShown = 2000;      // bytes
constexpr size_t kShownOnOneLine = 320;  // bytes

struct Row {
  std::vector<int32_t> ids, labels;
};

Row read(const RowSet& rows, int64_t number) {
  Row row;
  rows.read(number, row.ids, row.labels);
  return row;
}

void show(const Row& row, int64_t number, int64_t trained, const Tokenizer* tokenizer,
          Reporter& reporter) {
  std::vector<uint8_t> flags(row.labels.size());
  for (size_t i = 1; i < flags.size(); ++i) flags[i] = row.labels[i] != kIgnoredLabel;
  const std::string text = shortened(
      tokenizer ? marked_text(*tokenizer, row.ids, flags) : marked_ids(row.ids, flags), kMostShown);
  reporter.note("row " + std::to_string(number + 1) + ": " + std::to_string(trained) + " of its " +
                counted(std::ssize(row.ids), "token") +
                " are trained, those between \u27e6 and \u27e7: " +
                with_visible_breaks(shortened(text, kShownOnOneLine)));
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    reporter.detail("  | " + text.substr(begin, end - begin));
    begin = end + 1;
  }
}

}  // namespace

void preview_samples(const RowSet& rows, const RunConfig& config,
                     const std::vector<int64_t>& end_ids, Reporter& reporter) {
  std::optional<Tokenizer> tokenizer;
  std::vector<int32_t> ends(end_ids.begin(), end_ids.end());
  if (has_model_file(config.model, "tokenizer.json")) {
    tokenizer.emplace(config.model, config.follow_links);
    if (tokenizer->has_end_token()) ends.push_back(tokenizer->end_id());
  }
  bool shown = false, any_whole = false, any_ends = false;
  for (int64_t number = 0; number < std::min(rows.rows(), kRowsSeen); ++number) {
    if (rows.trained(number) == 0) continue;
    // Cut rows end anywhere, and rows of ids as whoever made them meant.
    const bool whole = rows.length(number) < config.seq_len && rows.encoded(number);
    if (shown && (!whole || any_ends)) continue;
    const Row row = read(rows, number);
    if (!shown)
      show(row, number, rows.trained(number), tokenizer ? &*tokenizer : nullptr, reporter);
    shown = true;
    any_whole |= whole;
    any_ends |= whole && tokenizer && ends_turn(row.ids, row.labels, ends, *tokenizer);
  }
  if (tokenizer && any_whole && !any_ends) {
    reporter.warn(
        "no row ends with a trained end token (eos_token of tokenizer_config.json, eos_token_id of "
        "config.json and generation_config.json): the model will not learn where to stop");
  }
}

}  // namespace hearth
