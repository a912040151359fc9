// Decodes ids to text, one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/tokenizer/tokenizer.h"

namespace hearth {

/// Decodes ids as `generate` produces them. Returns only whole UTF-8 characters, and keeps the
/// bytes of an unfinished one. All pieces joined equal the text of `decode`.
class StreamDecoder {
 public:
  /// `skip_special`: omit special tokens. The tokenizer must outlive this.
  StreamDecoder(const Tokenizer& tokenizer, bool skip_special);
  ~StreamDecoder();
  StreamDecoder(const StreamDecoder&) = delete;
  StreamDecoder& operator=(const StreamDecoder&) = delete;
  std::string push(int32_t id);  // empty for an id without a token
  std::string finish();          // the rest; unfinished bytes become U+FFFD

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth
