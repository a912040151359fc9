#include "data/samples/token_store.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace hearth {
namespace {

constexpr int64_t kRowsPerMark = 64;

}  // namespace

TokenStore::TokenStore(int64_t limit)
    : limit_(limit > 0 ? static_cast<uint32_t>(std::min<int64_t>(limit, INT32_MAX)) : INT32_MAX) {}

void TokenStore::add(std::span<const int32_t> ids, std::span<const int32_t> labels) {
  if (rows() % kRowsPerMark == 0) marks_.push_back(end_);
  const uint32_t runs = append_row_words(ids, labels, words_);
  const size_t given = std::min<size_t>(ids.size(), limit_);
  const int64_t trained = count_trained(labels.first(given));
  index_.push_back({static_cast<uint32_t>(ids.size()), runs, static_cast<uint32_t>(trained)});
  end_ += runs + ids.size();
  tokens_ += static_cast<int64_t>(given);
  trained_ += trained;
}

uint64_t TokenStore::begin(int64_t row) const {
  uint64_t begin = marks_[row / kRowsPerMark];
  for (int64_t i = row - row % kRowsPerMark; i < row; ++i) {
    begin += uint64_t{index_[i].runs} + index_[i].length;
  }
  return begin;
}

void TokenStore::read(int64_t row, std::vector<int32_t>& ids, std::vector<int32_t>& labels) const {
  const Entry& entry = index_[row];
  const auto words =
      std::span(words_).subspan(begin(row), entry.runs + static_cast<size_t>(length(row)));
  const size_t before = ids.size();
  const auto given = words.subspan(entry.runs);
  ids.insert(ids.end(), given.begin(), given.end());
  append_labels(words.first(entry.runs), std::span(ids).subspan(before), labels);
}

int64_t TokenStore::bytes() const {
  return static_cast<int64_t>(index_.capacity() * sizeof(Entry) +
                              marks_.capacity() * sizeof(uint64_t) +
                              words_.capacity() * sizeof(uint32_t));
}

}  // namespace hearth
