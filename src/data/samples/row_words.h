// A row as 32-bit words, as it lies in memory and on disk: its labels as runs, then its ids. Labels
// are nearly always long runs of "as the id" and "ignored", so a token costs four bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hearth {

/// The label of a token that is not trained.
inline constexpr int32_t kIgnoredLabel = -100;

/// How many labels of a document count: those from its second position on that are not ignored
/// (the first token has nothing before it that could predict it).
int64_t count_trained(std::span<const int32_t> labels);

/// Appends the runs of the labels, then the ids; returns the words of the runs. As many labels as
/// ids, below 2^30. A run is a word, kind in the two low bits, length above them: 0 ignored, 1 as
/// the id, 2 other labels, which follow it.
uint32_t append_row_words(std::span<const int32_t> ids, std::span<const int32_t> labels,
                          std::vector<uint32_t>& words);

/// Appends the labels of the first ids of a row; `runs` are all words of its runs.
void append_labels(std::span<const uint32_t> runs, std::span<const int32_t> ids,
                   std::vector<int32_t>& labels);

/// Labels of a row that count: of all of it, and of what is left when it is cut.
struct TrainedLabels {
  uint32_t whole = 0, cut = 0;
};

/// Checks the words of a row of `length` ids, the first `runs` of them those of the runs: ids in
/// [0, vocabulary), labels too or ignored, runs that cover the row exactly. Nullopt where a word is
/// wrong. `limit`: ids that a cut leaves.
std::optional<TrainedLabels> check_row_words(std::span<const uint32_t> words, uint32_t runs,
                                             uint32_t length, uint32_t limit, uint32_t vocabulary);

}  // namespace hearth
