// The rows that a run draws from: of one or several stores, all of them or a part, and how often an
// epoch passes over each store.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/random.h"
#include "data/samples/token_store.h"

namespace hearth {

/// Whoever looks for rows to show or to judge by looks at no more than so many, the first ones.
inline constexpr int64_t kRowsSeen = 1000;

/// Rows are numbered through, store after store. The stores must outlive it.
///
/// An epoch is a list of row numbers: every store as often as the whole part of its passes says,
/// then, for the rest of them, rows chosen anew each epoch (the rest times its rows, rounded; never
/// the same row twice). A store with rows gives at least one.
class RowSet {
 public:
  RowSet() = default;
  explicit RowSet(const TokenStore& store) { add(store); }

  /// Appends rows of a store: those of the list (ascending), or all. `passes` an epoch, above 0.
  void add(const TokenStore& store, std::optional<std::vector<uint32_t>> rows = std::nullopt,
           double passes = 1);

  int64_t rows() const { return rows_; }
  int64_t length(int64_t row) const;
  int64_t trained(int64_t row) const;
  bool encoded(int64_t row) const;  // TokenStore::encoded of its file
  /// Appends ids and labels of a row.
  void read(int64_t row, std::vector<int32_t>& ids, std::vector<int32_t>& labels) const;

  /// Over all rows, each once.
  int64_t tokens() const { return tokens_; }
  int64_t trained_tokens() const { return trained_; }
  int64_t longest() const { return longest_; }

  int64_t rows_in_epoch() const { return rows_in_epoch_; }
  /// Rows of an epoch, store after store, each pass in file order.
  std::vector<uint32_t> epoch_rows(uint64_t seed, int64_t epoch) const;
  /// No store has a fraction of a pass: every epoch has the same rows.
  bool epochs_alike() const { return alike_; }
  /// How often a row comes in an epoch at most.
  int64_t most_copies(int64_t row) const;

  /// Bytes of the lists of rows (the stores count their own).
  int64_t bytes() const;

 private:
  struct Part {
    const TokenStore* store;
    std::optional<std::vector<uint32_t>> chosen;
    int64_t begin, rows;  // numbers of its rows
    int64_t whole;        // passes
    int64_t more;         // rows of the pass that is not whole
  };
  const Part& part_of(int64_t row) const;
  int64_t row_of_store(const Part& part, int64_t row) const {
    return part.chosen ? (*part.chosen)[row - part.begin] : row - part.begin;
  }

  std::vector<Part> parts_;
  int64_t rows_ = 0, rows_in_epoch_ = 0;
  int64_t tokens_ = 0, trained_ = 0, longest_ = 0;
  bool alike_ = true;
};

/// `count` of the numbers 0 to n - 1, ascending; every choice is as likely (selection sampling,
/// Fan et al. 1962; Knuth, TAOCP 2, algorithm S).
std::vector<uint32_t> choose_rows(int64_t n, int64_t count, const Random& random);

}  // namespace hearth
