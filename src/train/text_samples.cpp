#include "train/text_samples.h"

#include <algorithm>
#include <cmath>

#include "checkpoint/model_files.h"
#include "train/sampling.h"

namespace hearth {

namespace {}  // namespace

std::vector<std::vector<int32_t>> sample_prompts(const RowSet& rows, int64_t count) {
  std::vector<std::vector<int32_t>> prompts;
  for (int64_t row = 0; row < std::min(rows.rows(), kRowsSeen); ++row) {
    if (std::ssize(prompts) == count) break;
    std::vector<int32_t> ids, labels;
    rows.read(row, ids, labels);
    const auto trained = std::find_if(labels.begin(), labels.end(),
                                      [](int32_t label) { return label != kIgnoredLabel; });
    const int64_t before = trained - labels.begin();
    // The first token of a text is never a target.
    const int64_t end = before > 1 ? before : std::ssize(ids) / 2;
    if (end == 0 || trained == labels.end()) continue;
    const int64_t begin = std::max<int64_t>(0, end - kMostPromptTokens);
    prompts.emplace_back(ids.begin() + begin, ids.begin() + end);
  }
  return prompts;
}

SampleWriter::SampleWriter(const RunConfig& config, const ModelSpec& spec)
    : ends_(spec.eos_ids), vocabulary_(spec.vocabulary) {
  if (!has_model_file(config.model, "tokenizer.json")) return;
  tokenizer_.emplace(config.model, config.follow_links);
  if (tokenizer_->has_end_token()) ends_.push_back(tokenizer_->end_id());
}

std::optional<std::string> SampleWriter::continue_prompt(Session& session,
                                                         const std::vector<int32_t>& prompt,
                                                         const std::function<bool()>& stop) const {
  std::vector<int32_t> written;
  const float* logits = session.decode(prompt, 0);
  for (int64_t past = std::ssize(prompt); std::ssize(written) < kSampleTokens; ++past) {
    if (stop()) return std::nullopt;
    const std::span scores(logits, static_cast<size_t>(vocabulary_));
    if (!std::all_of(scores.begin(), scores.end(), [](float x) { return std::isfinite(x); })) {
      return text(written) + " (the logits that follow are not finite)";
    }
    const int32_t id = next_token(scores, {}, 0);
    if (std::find(ends_.begin(), ends_.end(), id) != ends_.end()) break;
    written.push_back(id);
    logits = session.decode({&written.back(), 1}, past);
  }
  return text(written);
}

std::string SampleWriter::text(const std::vector<int32_t>& ids) const {
  if (tokenizer_) return tokenizer_->decode(ids);
  std::string list;
  for (const int32_t id : ids) list += (list.empty() ? "" : " ") + std::to_string(id);
  return list;
}

}  // namespace hearth
