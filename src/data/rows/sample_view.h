// Prints a sample for people: its text with the trained spans marked.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/tokenizer/tokenizer.h"

namespace hearth {

/// The marks around a trained span.
struct TrainedMarks {
  std::string begin = "\u27e6", end = "\u27e7";  // white square brackets
};

/// The ids decoded to text, special tokens included. A character that spans several tokens counts
/// to the last. `trained` has one entry per id. Control characters other than line breaks and tabs
/// become U+FFFD.
std::string marked_text(const Tokenizer& tokenizer, std::span<const int32_t> ids,
                        std::span<const uint8_t> trained, const TrainedMarks& marks = {});

/// The same without a tokenizer: the ids, separated by spaces.
std::string marked_ids(std::span<const int32_t> ids, std::span<const uint8_t> trained,
                       const TrainedMarks& marks = {});

/// Shortens a marked text to about `most` bytes. Replaces the middle of each long run between
/// marks, then the end of the text, by "[... 1234 bytes ...]". Cuts between characters.
std::string shortened(const std::string& marked, size_t most, const TrainedMarks& marks = {});

}  // namespace hearth
