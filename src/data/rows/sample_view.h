// A sample for people: its text with the trained spans marked.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/tokenizer/tokenizer.h"

namespace hearth {

/// What stands around a trained span.
struct TrainedMarks {
  std::string begin = "\u27e6", end = "\u27e7";  // white square brackets
};

/// The ids as text (special tokens too), from their own decoding: a character that lies in several
/// tokens stands with the last of them. `trained` has an entry an id. Control characters but line
/// breaks and tabs become U+FFFD.
std::string marked_text(const Tokenizer& tokenizer, std::span<const int32_t> ids,
                        std::span<const uint8_t> trained, const TrainedMarks& marks = {});

/// The same for ids that no tokenizer explains: the ids, separated by blanks.
std::string marked_ids(std::span<const int32_t> ids, std::span<const uint8_t> trained,
                       const TrainedMarks& marks = {});

/// A marked text of at most `most` bytes or so: of each long run without a mark the middle is left
/// out, then what is behind, as "[... 1234 bytes ...]". Cuts between characters.
std::string shortened(const std::string& marked, size_t most, const TrainedMarks& marks = {});

}  // namespace hearth
