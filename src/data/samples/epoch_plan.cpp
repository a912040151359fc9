// The order of an epoch and its packing.
#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "base/random.h"
#include "data/samples/sampler.h"

namespace hearth {
namespace {

// A window is closed once it holds both: enough rows to choose from, and enough sequences that a
// half-empty last one does not matter.
constexpr int64_t kWindowRows = 4096;
constexpr int64_t kWindowSequences = 64;

enum : uint32_t { row_draws = 0, sequence_draws = 1 };

// Numbers 0 to n-1, in a random order of this epoch (Fisher-Yates) or as they are.
std::vector<int64_t> order_of(int64_t n, const SamplerOptions& options, int64_t epoch,
                              uint32_t draws) {
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), int64_t{0});
  if (!options.shuffle) return order;
  const Random random(options.seed, RandomSite::shuffle, static_cast<uint32_t>(epoch), draws);
  for (int64_t i = n - 1; i > 0; --i) {
    std::swap(order[i], order[random.below(i, i + 1)]);
  }
  return order;
}

// Packs rows[begin, end) and appends the sequences to the plan.
void pack_window(const TokenStore& store, int64_t seq_len, std::span<const int64_t> rows,
                 EpochPlan& plan) {
  std::vector<int64_t> longest_first(rows.size());
  std::iota(longest_first.begin(), longest_first.end(), int64_t{0});
  std::stable_sort(longest_first.begin(), longest_first.end(), [&](int64_t a, int64_t b) {
    return store.length(rows[a]) > store.length(rows[b]);
  });

  std::vector<std::vector<int64_t>> sequences;  // places in `rows`
  std::set<std::pair<int64_t, size_t>> room;    // tokens left in which sequence
  for (const int64_t place : longest_first) {
    const int64_t length = store.length(rows[place]);
    size_t sequence = sequences.size();
    int64_t left = seq_len;
    if (const auto fit = room.lower_bound({length, 0}); fit != room.end()) {
      std::tie(left, sequence) = *fit;
      room.erase(fit);
    } else {
      sequences.emplace_back();
    }
    sequences[sequence].push_back(place);
    if (left > length) room.emplace(left - length, sequence);
  }

  for (auto& sequence : sequences) std::sort(sequence.begin(), sequence.end());
  std::sort(sequences.begin(), sequences.end());
  for (const auto& sequence : sequences) {
    for (const int64_t place : sequence) plan.rows.push_back(rows[place]);
    plan.offsets.push_back(static_cast<int64_t>(plan.rows.size()));
  }
}

EpochPlan pack(const TokenStore& store, int64_t seq_len, const std::vector<int64_t>& rows) {
  EpochPlan plan;
  plan.rows.reserve(rows.size());
  plan.offsets = {0};
  size_t begin = 0;
  int64_t tokens = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    tokens += store.length(rows[i]);
    const size_t count = i + 1 - begin;
    const bool full = count >= kWindowRows && tokens >= kWindowSequences * seq_len;
    if (full || i + 1 == rows.size()) {
      pack_window(store, seq_len, std::span(rows).subspan(begin, count), plan);
      begin = i + 1;
      tokens = 0;
    }
  }
  return plan;
}

EpochPlan reordered(const EpochPlan& plan, const std::vector<int64_t>& order) {
  EpochPlan result;
  result.rows.reserve(plan.rows.size());
  result.offsets = {0};
  for (const int64_t i : order) {
    const auto sequence = plan.sequence(i);
    result.rows.insert(result.rows.end(), sequence.begin(), sequence.end());
    result.offsets.push_back(static_cast<int64_t>(result.rows.size()));
  }
  return result;
}

}  // namespace

EpochPlan plan_epoch(const TokenStore& store, const SamplerOptions& options, int64_t epoch) {
  std::vector<int64_t> rows = order_of(store.rows(), options, epoch, row_draws);
  if (!options.packing) {
    EpochPlan plan{std::move(rows), std::vector<int64_t>(store.rows() + 1)};
    std::iota(plan.offsets.begin(), plan.offsets.end(), int64_t{0});
    return plan;
  }
  EpochPlan plan = pack(store, options.seq_len, rows);
  // Packing puts sequences of one long document in front; the order of training shall not know.
  if (options.shuffle) {
    plan = reordered(plan, order_of(plan.sequences(), options, epoch, sequence_draws));
  }
  return plan;
}

}  // namespace hearth
