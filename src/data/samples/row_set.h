// The rows that a run draws from: all or some rows of one or more stores, and the number of passes
// over each store per epoch.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/random.h"
#include "data/samples/token_store.h"

namespace hearth {

/// Previews, sample prompts and advice look only at this many first rows.
inline constexpr int64_t kRowsSeen = 1000;

/// Numbers rows consecutively, store after store. The stores must outlive it.
///
/// An epoch is a list of row numbers. With p passes, a store of n rows contributes all rows
/// floor(p) times, then round((p - floor(p)) * n) distinct rows, drawn afresh each epoch. A store
/// with rows contributes at least one row.
class RowSet {
 public:
  RowSet() = default;
  explicit RowSet(const TokenStore& store) { add(store); }

  /// Appends the given rows of a store (ascending), or all. `passes`: per epoch, above 0.
  void add(const TokenStore& store, std::optional<std::vector<uint32_t>> rows = std::nullopt,
           double passes = 1);

  int64_t rows() const { return rows_; }
  int64_t length(int64_t row) const;
  int64_t trained(int64_t row) const;
  bool encoded(int64_t row) const;  // TokenStore::encoded of its store
  /// Appends ids and labels of a row.
  void read(int64_t row, std::vector<int32_t>& ids, std::vector<int32_t>& labels) const;

  /// Totals that count each row once.
  int64_t tokens() const { return tokens_; }
  int64_t trained_tokens() const { return trained_; }
  int64_t longest() const { return longest_; }

  int64_t rows_in_epoch() const { return rows_in_epoch_; }
  /// The rows of an epoch, store after store, each pass in file order.
  std::vector<uint32_t> epoch_rows(uint64_t seed, int64_t epoch) const;
  /// Whether every epoch has the same rows: no store has a fraction of a pass.
  bool epochs_alike() const { return alike_; }
  /// Upper bound on how often an epoch contains a row.
  int64_t most_copies(int64_t row) const;

  /// Bytes of the row lists, without the stores.
  int64_t bytes() const;

 private:
  struct Part {
    const TokenStore* store;
    std::optional<std::vector<uint32_t>> chosen;
    int64_t begin, rows;  // first row number, number of rows
    int64_t whole;        // whole passes
    int64_t more;         // rows of the partial pass
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

/// Draws `count` of the numbers 0 to n - 1, ascending and uniformly (selection sampling, Fan et al.
/// 1962; Knuth, TAOCP 2, algorithm S).
std::vector<uint32_t> choose_rows(int64_t n, int64_t count, const Random& random);

}  // namespace hearth
