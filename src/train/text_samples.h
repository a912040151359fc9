// Texts that a model in training writes behind rows of its data, to be read beside one another.
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
inline constexpr int64_t kSampleTokens = 64;  // that are written at most

/// The beginnings of the first rows: of a chat all before its first trained token, of a text that is
/// trained as a whole the first half; of long ones the last kMostPromptTokens. Rows that give no
/// prompt are passed over.
std::vector<std::vector<int32_t>> sample_prompts(const RowSet& rows, int64_t count);

class SampleWriter {
 public:
  /// Reads the model's tokenizer; without one, texts are lists of ids.
  SampleWriter(const RunConfig& config, const ModelSpec& spec);

  /// What the likeliest tokens make behind a prompt, up to an end token or kSampleTokens; nullopt when
  /// `stop` says so. Changes no weight.
  std::optional<std::string> continue_prompt(Session& session, const std::vector<int32_t>& prompt,
                                             const std::function<bool()>& stop) const;
  std::string text(const std::vector<int32_t>& ids) const;

 private:
  std::optional<Tokenizer> tokenizer_;
  std::vector<int64_t> ends_;
  int64_t vocabulary_ = 0;
};

}  // namespace hearth
