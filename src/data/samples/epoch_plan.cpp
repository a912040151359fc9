#include "data/samples/epoch_plan.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "base/random.h"

namespace hearth {
namespace {

// A window is closed once it holds both: enough rows to choose from, and enough sequences that a
// half-empty last one does not matter.
constexpr size_t kWindowRows = 4096;
constexpr int64_t kWindowSequences = 64;

enum : uint32_t { row_draws = 0, sequence_draws = 1 };

// A random order of this epoch (Fisher-Yates).
void shuffle(std::vector<uint32_t>& order, const SamplerOptions& options, int64_t epoch,
             uint32_t draws) {
  const Random random(options.seed, RandomSite::shuffle, static_cast<uint32_t>(epoch), draws);
  for (size_t i = order.size(); i-- > 1;) std::swap(order[i], order[random.below(i, i + 1)]);
}

// Packs rows[begin, end) of the plan in place and appends the ends of the sequences.
void pack_window(const RowSet& set, int64_t seq_len, size_t begin, size_t end, EpochPlan& plan) {
  const std::vector<uint32_t> rows(plan.rows.begin() + static_cast<ptrdiff_t>(begin),
                                   plan.rows.begin() + static_cast<ptrdiff_t>(end));
  std::vector<int64_t> lengths(rows.size());
  for (size_t place = 0; place < rows.size(); ++place) lengths[place] = set.length(rows[place]);
  std::vector<uint32_t> longest_first(rows.size());
  std::iota(longest_first.begin(), longest_first.end(), uint32_t{0});
  std::stable_sort(longest_first.begin(), longest_first.end(),
                   [&](uint32_t a, uint32_t b) { return lengths[a] > lengths[b]; });

  std::vector<std::vector<uint32_t>> sequences;  // places in `rows`
  std::set<std::pair<int64_t, size_t>> room;     // tokens left in which sequence
  for (const uint32_t place : longest_first) {
    size_t sequence = sequences.size();
    int64_t left = seq_len;
    if (const auto fit = room.lower_bound({lengths[place], 0}); fit != room.end()) {
      std::tie(left, sequence) = *fit;
      room.erase(fit);
    } else {
      sequences.emplace_back();
    }
    sequences[sequence].push_back(place);
    if (left > lengths[place]) room.emplace(left - lengths[place], sequence);
  }

  for (auto& sequence : sequences) std::sort(sequence.begin(), sequence.end());
  std::sort(sequences.begin(), sequences.end());
  size_t next = begin;
  for (const auto& sequence : sequences) {
    for (const uint32_t place : sequence) plan.rows[next++] = rows[place];
    plan.ends.push_back(static_cast<uint32_t>(next));
  }
}

void pack(const RowSet& set, int64_t seq_len, EpochPlan& plan) {
  size_t begin = 0;
  int64_t tokens = 0;
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    tokens += set.length(plan.rows[i]);
    const size_t count = i + 1 - begin;
    const bool full = count >= kWindowRows && tokens >= kWindowSequences * seq_len;
    if (full || i + 1 == plan.rows.size()) {
      pack_window(set, seq_len, begin, i + 1, plan);
      begin = i + 1;
      tokens = 0;
    }
  }
}

}  // namespace

EpochPlan plan_epoch(const RowSet& rows, const SamplerOptions& options, int64_t epoch) {
  EpochPlan plan;
  plan.rows = rows.epoch_rows(options.seed, epoch);
  if (options.shuffle) shuffle(plan.rows, options, epoch, row_draws);
  if (!options.packing) return plan;
  pack(rows, options.seq_len, plan);
  // Packing puts sequences of one long document in front; the order of training shall not know.
  if (options.shuffle) {
    plan.order.resize(plan.ends.size());
    std::iota(plan.order.begin(), plan.order.end(), uint32_t{0});
    shuffle(plan.order, options, epoch, sequence_draws);
  }
  return plan;
}

}  // namespace hearth
