// Unicode normalization form C that remembers where its output came from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace hearth {

/// Normalized text and the way back. Clusters of characters that the form left alone map byte by
/// byte; those that it changed map as a whole.
class NormalizedText {
 public:
  /// Valid UTF-8. Time and memory linear in the text, but for sorting runs of combining marks.
  explicit NormalizedText(std::string_view original);

  std::string_view text() const { return unchanged_ ? original_ : std::string_view(text_); }
  /// Bytes of the original that the bytes of the normalized text came from.
  TextSpan original(TextSpan normalized) const;

 private:
  struct Change {
    TextSpan normalized;
    TextSpan original;
  };
  const Change* last_change_from(uint32_t position) const;

  std::string_view original_;
  bool unchanged_ = true;
  std::string text_;
  std::vector<Change> changes_;  // in order
};

}  // namespace hearth
