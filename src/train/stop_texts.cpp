#include "train/stop_texts.h"

#include <algorithm>
#include <utility>

namespace hearth {

std::string StopTexts::push(std::string_view piece) {
  held_ += piece;
  size_t first = std::string::npos;
  for (const std::string& text : texts_) first = std::min(first, held_.find(text));
  if (first != std::string::npos) {
    found_ = true;
    held_.resize(first);
    return std::exchange(held_, "");
  }
  size_t keep = 0;  // the longest end of held_ that begins a stop text
  for (const std::string& text : texts_) {
    size_t length = std::min(text.size() - 1, held_.size());
    while (length > keep && !held_.ends_with(std::string_view(text).substr(0, length))) --length;
    keep = std::max(keep, length);
  }
  std::string sure = held_.substr(0, held_.size() - keep);
  held_.erase(0, sure.size());
  return sure;
}

std::string StopTexts::finish() { return std::exchange(held_, ""); }

}  // namespace hearth
