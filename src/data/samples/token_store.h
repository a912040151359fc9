// The tokens of all rows of a file: a small index in memory, the words of the rows behind it. What
// the sampler cuts batches from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/samples/row_words.h"

namespace hearth {

/// Rows ("documents") in the order they were added. Not changed after reading, so that threads may
/// share it. In memory: 12.1 bytes a row, and the words where they lie in memory.
class TokenStore {
 public:
  /// Rows are given cut to `limit` ids (0: whole); they are kept whole.
  explicit TokenStore(int64_t limit = 0);

  /// Appends a row of at least one id; labels stand beside their own ids, not yet shifted.
  void add(std::span<const int32_t> ids, std::span<const int32_t> labels);

  int64_t rows() const { return static_cast<int64_t>(index_.size()); }
  /// Sums over the rows as they are given.
  int64_t tokens() const { return tokens_; }
  int64_t trained_tokens() const { return trained_; }

  int64_t length(int64_t row) const { return std::min<int64_t>(index_[row].length, limit_); }
  int64_t whole_length(int64_t row) const { return index_[row].length; }
  int64_t trained(int64_t row) const { return index_[row].trained; }

  /// Appends ids and labels of a row. Threads may read at once.
  void read(int64_t row, std::vector<int32_t>& ids, std::vector<int32_t>& labels) const;

  /// Bytes that it holds in memory, spare capacity included.
  int64_t bytes() const;

 private:
  struct Entry {
    uint32_t length;   // ids, uncut
    uint32_t runs;     // words of labels before them
    uint32_t trained;  // labels that count, of the row as it is given
  };
  uint64_t begin(int64_t row) const;  // of its words

  uint32_t limit_;
  std::vector<Entry> index_;
  std::vector<uint64_t> marks_;  // begin of every 64th row
  uint64_t end_ = 0;             // of the words of all rows
  std::vector<uint32_t> words_;
  int64_t tokens_ = 0, trained_ = 0;
};

}  // namespace hearth
