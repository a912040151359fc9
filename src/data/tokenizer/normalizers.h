// The normalizer of tokenizer.json: rewrites a text before it is split.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "data/tokenizer/aligned_text.h"

namespace hearth {

/// Supports NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Nmt, Prepend, Replace, ByteLevel,
/// and Sequences of them; null does nothing. Immutable: threads may share it.
class Normalizer {
 public:
  /// Reads the value of `normalizer`; `source` names the file in messages. Input error for an
  /// unknown component or key.
  Normalizer(const Json& description, const std::string& source);

  void apply(AlignedText& text) const {
    for (const auto& step : steps_) step(text);
  }
  bool changes_nothing() const { return steps_.empty(); }

 private:
  void add(const Json& description, const std::string& where);

  std::vector<std::function<void(AlignedText&)>> steps_;
};

}  // namespace hearth
