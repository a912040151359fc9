#include "data/samples/run_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/counted.h"
#include "base/error_format.h"
#include "base/pool.h"
#include "base/setting.h"
#include "data/rows/byte_stream.h"
#include "data/rows/raw_rows.h"
#include "data/rows/row_intake.h"

namespace hearth {
namespace {

// How many of n rows are kept for evaluation.
int64_t validation_rows(double size, int64_t n) {
  const double asked = size < 1 ? std::ceil(size * static_cast<double>(n) - 1e-9) : size;
  if (asked >= static_cast<double>(n)) {
    throw usage_error("{}: {} for evaluation leave none of the {} to train on; hold back fewer",
                      spelled(Setting::val_size), counted(std::llround(asked), "row"), n);
  }
  return std::llround(asked);
}

}  // namespace

RunRows::RunRows(const RunRowsRequest& request, const Pool& pool) {
  std::vector<std::string> paths;
  for (const DataFile& file : request.files) paths.push_back(file.path);
  check_data_files(paths);
  FileTokenizer tokenizer(request.rows, request.cache, pool, request.hooks);
  for (const DataFile& file : request.files) take(request, file, tokenizer.read(file.path));
  require_trained_rows(summary_.totals, paths);
  measure_lengths();
  divide(request);
  unbind_thread();  // it converted rows as a worker, and may ask for this process's cores next
}

void RunRows::take(const RunRowsRequest& request, const DataFile& file, FileTokens tokens) {
  const RowOptions& options = request.rows;
  const TokenStore& store = stores_.emplace_back(std::move(tokens.store));
  digests_.emplace_back(file.path, tokens.digest);
  if (const auto& row = store.first_long_row()) {
    check_length(options, row->length, shown_name(file.path), row->line);
  }
  RowTotals& totals = summary_.totals;
  const int64_t before = totals.trained_tokens;
  totals.bad += static_cast<int64_t>(tokens.bad.size());
  for (int64_t row = 0; row < store.rows(); ++row) {
    const int64_t whole = store.whole_length(row);
    if (is_dropped(options, whole)) {
      ++totals.dropped;
    } else {
      totals.count(whole, store.length(row), store.trained(row));
    }
  }
  if (options.overflow == Overflow::truncate) {
    summary_.truncated_trained_tokens +=
        store.whole_trained_tokens() - (totals.trained_tokens - before);
  }
}

void RunRows::measure_lengths() {
  std::vector<uint32_t> lengths;
  for (const TokenStore& store : stores_) {
    lengths.reserve(lengths.size() + static_cast<size_t>(store.rows()));
    for (int64_t row = 0; row < store.rows(); ++row) {
      lengths.push_back(static_cast<uint32_t>(store.whole_length(row)));
    }
  }
  const auto quantile = [&](size_t percent) -> int64_t {  // the nearest rank
    const size_t rank = (lengths.size() * percent + 99) / 100;
    const auto at = lengths.begin() + static_cast<ptrdiff_t>(rank - 1);
    std::nth_element(lengths.begin(), at, lengths.end());
    return *at;
  };
  summary_.p50 = quantile(50);
  summary_.p90 = quantile(90);
  summary_.p99 = quantile(99);
  summary_.longest = quantile(100);
}

void RunRows::divide(const RunRowsRequest& request) {
  const int64_t kept = summary_.totals.rows;
  std::vector<uint32_t> chosen;  // of the rows that are left, numbered through
  if (request.val_size > 0) {
    chosen = choose_rows(kept, validation_rows(request.val_size, kept),
                         Random(request.seed, RandomSite::split));
  }
  Hasher split;
  auto next = chosen.begin();
  uint32_t number = 0;
  for (size_t i = 0; i < stores_.size(); ++i) {
    const TokenStore& store = stores_[i];
    std::vector<uint32_t> train, held;
    const bool all = chosen.empty() && summary_.totals.dropped == 0;
    for (int64_t row = 0; !all && row < store.rows(); ++row) {
      if (is_dropped(request.rows, store.whole_length(row))) continue;
      const bool is_held = next != chosen.end() && *next == number;
      if (is_held) ++next;
      (is_held ? held : train).push_back(static_cast<uint32_t>(row));
      ++number;
    }
    split.update_u64(held.size());
    split.update(held.data(), held.size() * sizeof(uint32_t));
    const double passes = request.files[i].passes;
    train.shrink_to_fit();
    held.shrink_to_fit();
    if (all) {
      training_.add(store, std::nullopt, passes);
    } else {
      training_.add(store, std::move(train), passes);
      validation_.add(store, std::move(held));
    }
  }
  if (training_.trained_tokens() == 0 ||
      (validation_.rows() > 0 && validation_.trained_tokens() == 0)) {
    throw input_error("{}: the rows {} have no trained token; change the size or {}",
                      spelled(Setting::val_size),
                      training_.trained_tokens() == 0 ? "left to train on" : "for evaluation",
                      spelled(Setting::seed));
  }
  split_ = split.digest();
}

int64_t RunRows::bytes() const {
  int64_t bytes = training_.bytes() + validation_.bytes();
  for (const TokenStore& store : stores_) bytes += store.bytes();
  return bytes;
}

}  // namespace hearth
