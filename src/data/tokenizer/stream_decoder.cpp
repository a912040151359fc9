#include "base/utf8.h"
#include "data/tokenizer/byte_alphabet.h"
#include "data/tokenizer/tokenizer.h"

namespace hearth {
namespace {

// Length of the sequence that a lead byte announces; 1 for what leads nothing.
size_t announced_length(unsigned char lead) {
  if (lead >= 0xf0 && lead <= 0xf4) return 4;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  return lead >= 0xc2 && lead <= 0xdf ? 2 : 1;
}

// Whether the text, invalid as it stands, may become a character by more bytes.
bool may_become_character(std::string_view text) {
  const size_t length = announced_length(static_cast<unsigned char>(text[0]));
  if (text.size() >= length) return false;
  // Completed by the lowest and by the highest continuation: one of them is valid if any is.
  for (const char continuation : {'\x80', '\xbf'}) {
    std::string completed(text);
    completed.resize(length, continuation);
    if (decode_utf8(completed).length == length) return true;
  }
  return false;
}

}  // namespace

struct StreamDecoder::State {
  const Tokenizer& tokenizer;
  bool skip_special;
  std::string pending;
};

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
    : state_(std::make_unique<State>(State{tokenizer, skip_special, ""})) {}
StreamDecoder::~StreamDecoder() = default;

std::string StreamDecoder::push(int32_t id) {
  if (state_->skip_special && state_->tokenizer.is_special(id)) return "";
  std::string& pending_ = state_->pending;
  pending_ += bytes_of_alphabet(state_->tokenizer.token(id).value_or(""))
                  .value_or(std::string(state_->tokenizer.token(id).value_or("")));
  std::string_view rest = pending_;
  size_t ready = 0;
  while (!rest.empty()) {
    const size_t length = decode_utf8(rest).length;
    if (length == 0 && may_become_character(rest)) break;
    const size_t step = length == 0 ? 1 : length;
    ready += step;
    rest.remove_prefix(step);
  }
  std::string text = replace_invalid_utf8(std::string_view(pending_).substr(0, ready));
  pending_.erase(0, ready);
  return text;
}

std::string StreamDecoder::finish() {
  std::string text = replace_invalid_utf8(state_->pending);
  state_->pending.clear();
  return text;
}

}  // namespace hearth
