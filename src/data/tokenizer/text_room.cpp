#include "data/tokenizer/text_room.h"

#include "base/error.h"

namespace hearth {

void TextRoom::add_text(uint64_t bytes) {
  text_ += bytes;
  left_ += factor_ * bytes;
}

void TextRoom::refuse() const {
  throw input_error(where_ + ": expands a text of " + std::to_string(text_) +
                    " bytes by more than " + std::to_string(factor_ * text_ + kSlack) +
                    " bytes, the limit; look for a Replace or Prepend that multiplies");
}

void refuse_components(const std::string& where) {
  throw input_error(where + ": more than " + std::to_string(kMaxComponents) + " components");
}

}  // namespace hearth
