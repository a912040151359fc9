// Texts that the model writes as continuations of rows during training, for comparison.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/samples/row_set.h"
#include "data/tokenizer/tokenizer.h"
#include "setup/config.h"
#include "train/session.h"

namespace hearth {

inline constexpr int64_t kMostPromptTokens = 256;
inline constexpr int64_t kSampleTokens = 64;  // most tokens to write

/// Prompts from the first rows: the part before the first trained token, or the first half of a
/// text that is trained as a whole. Keeps the last kMostPromptTokens. Skips rows without a prompt.
std::vector<std::vector<int32_t>> sample_prompts(const RowSet& rows, int64_t count);

class SampleWriter {
 public:
  /// Reads the model's tokenizer. Without a tokenizer, texts are lists of ids.
  SampleWriter(const RunConfig& config, const ModelSpec& spec);

  /// Continues a prompt greedily, up to an end token or kSampleTokens. Nullopt if `stop` returns
  /// true. Changes no weight.
  std::optional<std::string> continue_prompt(Session& session, const std::vector<int32_t>& prompt,
                                             const std::function<bool()>& stop) const;
  std::string text(const std::vector<int32_t>& ids) const;

 private:
  std::optional<Tokenizer> tokenizer_;
  std::vector<int64_t> ends_;
  int64_t vocabulary_ = 0;
};

}  // namespace hearth
