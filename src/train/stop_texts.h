// Ends a text before the first stop text in it, while the text comes in pieces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hearth {

/// Holds back what may begin a stop text, until the text goes on in another way.
class StopTexts {
 public:
  /// None of the texts is empty.
  explicit StopTexts(std::vector<std::string> texts) : texts_(std::move(texts)) {}

  /// Takes the next piece. Returns what belongs to the text for certain. After a stop text, returns
  /// what is before it.
  std::string push(std::string_view piece);
  /// The rest, at the end of a text without a stop text.
  std::string finish();
  /// Whether a stop text came. Nothing may be pushed after that.
  bool found() const { return found_; }

 private:
  std::vector<std::string> texts_;
  std::string held_;
  bool found_ = false;
};

}  // namespace hearth
