#include "data/samples/row_set.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/random.h"

namespace hearth {
namespace {

constexpr uint32_t kFirstChoice = 2;  // draws below it are plan_epoch's

}  // namespace

std::vector<uint32_t> choose_rows(int64_t n, int64_t count, const Random& random) {
  std::vector<uint32_t> chosen;
  chosen.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < n && count > 0; ++i) {
    // Of the n - i numbers that are left, `count` are still to be taken.
    if (static_cast<int64_t>(random.below(i, n - i)) >= count) continue;
    chosen.push_back(static_cast<uint32_t>(i));
    --count;
  }
  return chosen;
}

void RowSet::add(const TokenStore& store, std::optional<std::vector<uint32_t>> rows,
                 double passes) {
  HEARTH_CHECK(passes > 0 && passes <= 1e6, "passes over a store");
  Part part{&store, std::move(rows), rows_, store.rows(), 0, 0};
  if (part.chosen) part.rows = static_cast<int64_t>(part.chosen->size());
  const double whole = std::floor(passes);
  part.whole = static_cast<int64_t>(whole);
  part.more = std::llround((passes - whole) * static_cast<double>(part.rows));
  if (part.whole == 0 && part.rows > 0) part.more = std::max<int64_t>(part.more, 1);
  alike_ = alike_ && passes == whole;
  rows_ += part.rows;
  rows_in_epoch_ += part.whole * part.rows + part.more;
  constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
  if (rows_ > kMost || rows_in_epoch_ > kMost) {
    throw input_error("more than 4294967295 rows in an epoch");
  }
  parts_.push_back(std::move(part));
  const Part& added = parts_.back();
  for (int64_t row = added.begin; row < rows_; ++row) {
    const int64_t length = store.length(row_of_store(added, row));
    tokens_ += length;
    longest_ = std::max(longest_, length);
    trained_ += store.trained(row_of_store(added, row));
  }
}

const RowSet::Part& RowSet::part_of(int64_t row) const {
  size_t i = parts_.size() - 1;  // few
  while (row < parts_[i].begin) --i;
  return parts_[i];
}

int64_t RowSet::length(int64_t row) const {
  const Part& part = part_of(row);
  return part.store->length(row_of_store(part, row));
}

int64_t RowSet::trained(int64_t row) const {
  const Part& part = part_of(row);
  return part.store->trained(row_of_store(part, row));
}

bool RowSet::encoded(int64_t row) const { return part_of(row).store->encoded(); }

void RowSet::read(int64_t row, std::vector<int32_t>& ids, std::vector<int32_t>& labels) const {
  const Part& part = part_of(row);
  part.store->read(row_of_store(part, row), ids, labels);
}

int64_t RowSet::most_copies(int64_t row) const {
  const Part& part = part_of(row);
  return part.whole + (part.more > 0 ? 1 : 0);
}

std::vector<uint32_t> RowSet::epoch_rows(uint64_t seed, int64_t epoch) const {
  std::vector<uint32_t> rows(static_cast<size_t>(rows_in_epoch_));
  auto next = rows.begin();
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    for (int64_t pass = 0; pass < part.whole; ++pass) {
      std::iota(next, next + part.rows, static_cast<uint32_t>(part.begin));
      next += part.rows;
    }
    if (part.more == 0) continue;
    const Random random(seed, RandomSite::shuffle, static_cast<uint32_t>(epoch),
                        kFirstChoice + static_cast<uint32_t>(i));
    for (const uint32_t row : choose_rows(part.rows, part.more, random)) {
      *next++ = static_cast<uint32_t>(part.begin) + row;
    }
  }
  return rows;
}

int64_t RowSet::bytes() const {
  size_t bytes = 0;
  for (const Part& part : parts_) {
    if (part.chosen) bytes += part.chosen->capacity() * sizeof(uint32_t);
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace hearth
