// Ids to text, one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/tokenizer/tokenizer.h"

namespace hearth {

/// Decodes ids as they come (`generate`): gives out whole UTF-8 characters only, keeps the bytes of
/// an unfinished one. All of it together is the text that `decode` gives.
class StreamDecoder {
 public:
  /// `skip_special`: special tokens give no text. The tokenizer must outlive this.
  StreamDecoder(const Tokenizer& tokenizer, bool skip_special);
  ~StreamDecoder();
  StreamDecoder(const StreamDecoder&) = delete;
  StreamDecoder& operator=(const StreamDecoder&) = delete;
  std::string push(int32_t id);  // an id that no token has gives nothing
  std::string finish();          // what is left, unfinished bytes as U+FFFD

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth
