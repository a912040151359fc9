// A row as 32-bit words, in memory and on disk: run-length encoded labels, then ids. Most labels
// are in long runs that are ignored or equal their ids, so a token costs about four bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hearth {

/// The label of a token that is not trained.
inline constexpr int32_t kIgnoredLabel = -100;

/// Number of trained targets of a document: labels that are not ignored, without the first. No
/// token before the first could predict it.
int64_t count_trained(std::span<const int32_t> labels);

/// Appends the runs of the labels, then the ids; returns the number of run words. Needs one label
/// per id, fewer than 2^30. A run is a word: the kind in the two low bits, the length above. Kinds:
/// 0 ignored, 1 equal to the ids, 2 other labels, stored in the words after it.
uint32_t append_row_words(std::span<const int32_t> ids, std::span<const int32_t> labels,
                          std::vector<uint32_t>& words);

/// Appends the labels of the first ids of a row. `runs`: all run words of the row.
void append_labels(std::span<const uint32_t> runs, std::span<const int32_t> ids,
                   std::vector<int32_t>& labels);

/// Number of trained targets of the whole row, and of the row after a cut.
struct TrainedLabels {
  uint32_t whole = 0, cut = 0;
};

/// Checks the words of a row with `runs` run words and `length` ids. Ids must be in [0,
/// vocabulary), labels too unless ignored, and the runs must cover the row exactly. Nullopt if not.
/// `limit`: number of ids after a cut.
std::optional<TrainedLabels> check_row_words(std::span<const uint32_t> words, uint32_t runs,
                                             uint32_t length, uint32_t limit, uint32_t vocabulary);

}  // namespace hearth
