// Stores of random rows, and what they should hold.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "data/samples/epoch_plan.h"
#include "data/samples/sampler.h"

namespace hearth::test {

struct Row {
  std::vector<int32_t> ids, labels;
};

/// Draws of one test case, one after the other.
class Draws {
 public:
  explicit Draws(uint64_t seed) : random_(seed, RandomSite::sample) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(random_.below(next_++, n)); }
  int64_t within(int64_t least, int64_t most) { return least + below(most - least + 1); }
  bool one_in(int64_t n) { return below(n) == 0; }

 private:
  Random random_;
  uint64_t next_ = 0;
};

/// Labels in runs: as the id, ignored, or other ids.
inline Row random_row(Draws& draws, int64_t length, int32_t vocabulary = 1000) {
  Row row;
  int64_t kind = 0;
  for (int64_t i = 0; i < length; ++i) {
    if (i == 0 || draws.one_in(3)) kind = draws.below(3);
    row.ids.push_back(static_cast<int32_t>(draws.below(vocabulary)));
    row.labels.push_back(kind == 0   ? row.ids.back()
                         : kind == 1 ? kIgnoredLabel
                                     : static_cast<int32_t>(draws.below(vocabulary)));
  }
  return row;
}

inline Row row_of(const TokenStore& store, int64_t row) {
  Row read;
  store.read(row, read.ids, read.labels);
  return read;
}

/// Rows of the given lengths; ids tell row and position, every third row has ignored labels.
inline TokenStore store_of(const std::vector<int64_t>& lengths) {
  TokenStore store;
  int32_t next = 0;
  for (size_t row = 0; row < lengths.size(); ++row) {
    Row made;
    for (int64_t i = 0; i < lengths[row]; ++i) made.ids.push_back(next++);
    made.labels = made.ids;
    if (row % 3 == 2) {
      std::fill(made.labels.begin(),
                made.labels.begin() + static_cast<ptrdiff_t>((made.labels.size() + 1) / 2),
                kIgnoredLabel);
    }
    store.add(made.ids, made.labels);
  }
  return store;
}

inline std::vector<int64_t> random_lengths(uint64_t seed, int64_t rows, int64_t longest) {
  Draws draws(seed);
  std::vector<int64_t> lengths(static_cast<size_t>(rows));
  for (int64_t& length : lengths) length = draws.within(1, longest);
  return lengths;
}

/// Rows of an epoch in training order.
inline std::vector<int64_t> order_of(const EpochPlan& plan) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < plan.sequences(); ++i) {
    const auto sequence = plan.sequence(i);
    rows.insert(rows.end(), sequence.begin(), sequence.end());
  }
  return rows;
}

inline bool same(const MicroBatch& a, const MicroBatch& b) {
  return a.ids == b.ids && a.labels == b.labels && a.positions == b.positions &&
         a.offsets == b.offsets && a.tokens == b.tokens && a.trained_tokens == b.trained_tokens &&
         a.sequences == b.sequences;
}

}  // namespace hearth::test
