#include "data/tokenizer/stream_decoder.h"

#include "data/tokenizer/tokenizer_parts.h"

namespace hearth {

struct StreamDecoder::State {
  State(const Tokenizer& of, bool without_special)
      : tokenizer(of), skip_special(without_special), run(of.parts_->decoder) {}

  const Tokenizer& tokenizer;
  bool skip_special;
  Decoder::Run run;
};

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
    : state_(std::make_unique<State>(tokenizer, skip_special)) {}

StreamDecoder::~StreamDecoder() = default;

std::string StreamDecoder::push(int32_t id) {
  const Tokenizer& tokenizer = state_->tokenizer;
  if (state_->skip_special && tokenizer.is_special(id)) return "";
  const auto token = tokenizer.token(id);
  return token ? state_->run.push(*token) : "";
}

std::string StreamDecoder::finish() {
  std::string text = state_->run.finish();
  state_ = std::make_unique<State>(state_->tokenizer, state_->skip_special);
  return text;
}

}  // namespace hearth
