#include "predictor/synthetic_routing.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "predictor/foretell.h"
#include "predictor/persistence.h"
#include "predictor/popularity.h"

namespace hearth {
namespace {

/// Experts that last in transition `i` of many, so that the mean over any run of transitions is the
/// persistence, to one expert.
int64_t lasting_of(const RoutingRequest& r, int64_t i) {
  const double each = r.persistence * static_cast<double>(least_quarter(r.experts));
  const auto until = [&](int64_t n) { return std::llround(each * static_cast<double>(n)); };
  return until(i + 1) - until(i);
}

}  // namespace

SyntheticRouting::SyntheticRouting(const RoutingRequest& request) : request_(request) {
  const RoutingRequest& r = request_;
  HEARTH_CHECK(r.layers > 0 && r.steps > 0, "routing: no layers or no steps");
  const Popularity ranked = zipf_popularity(r.experts, r.top_k, r.tokens, r.skew);
  const auto size = static_cast<size_t>(r.steps * r.layers * r.experts);
  first_.reserve(size), all_.reserve(size);
  std::vector<RankChain> chains;
  for (int64_t layer = 0; layer < r.layers; ++layer) {
    chains.emplace_back(ranked.first, r.persistence, r.seed, layer);
  }
  for (int64_t step = 0; step < r.steps; ++step) {
    for (int64_t layer = 0; layer < r.layers; ++layer) {
      RankChain& chain = chains[static_cast<size_t>(layer)];
      if (step > 0) chain.advance(lasting_of(r, (step - 1) * r.layers + layer));
      for (const int32_t rank : chain.ranks()) {
        first_.push_back(ranked.first[static_cast<size_t>(rank)]);
        all_.push_back(ranked.all[static_cast<size_t>(rank)]);
      }
    }
  }
  if (!r.token_hit) return;
  for (int64_t step = 0; step < r.steps; ++step) {
    for (int64_t layer = 0; layer < r.layers; ++layer) {
      const Random random(r.seed, RandomSite::predictor, static_cast<uint32_t>(layer),
                          static_cast<uint32_t>(step));
      const Foretold foretold = foretell(first(step, layer), r.tokens, *r.token_hit, random);
      predicted_.insert(predicted_.end(), foretold.counts.begin(), foretold.counts.end());
      hits_ += foretold.hits;
    }
  }
}

std::span<const int64_t> SyntheticRouting::row(const Counts& counts, int64_t step,
                                               int64_t layer) const {
  if (counts.empty()) return {};
  const int64_t at = (step * request_.layers + layer) * request_.experts;
  return std::span(counts).subspan(static_cast<size_t>(at), static_cast<size_t>(request_.experts));
}

std::span<const int64_t> SyntheticRouting::first(int64_t step, int64_t layer) const {
  return row(first_, step, layer);
}

std::span<const int64_t> SyntheticRouting::all(int64_t step, int64_t layer) const {
  return row(all_, step, layer);
}

std::span<const int64_t> SyntheticRouting::predicted(int64_t step, int64_t layer) const {
  return row(predicted_, step, layer);
}

double SyntheticRouting::mean_skew(const Counts& counts) const {
  double sum = 0;
  for (int64_t step = 0; step < request_.steps; ++step) {
    for (int64_t layer = 0; layer < request_.layers; ++layer) {
      sum += skew_of(row(counts, step, layer));
    }
  }
  return sum / static_cast<double>(request_.steps * request_.layers);
}

double SyntheticRouting::first_skew() const { return mean_skew(first_); }

double SyntheticRouting::all_skew() const {
  // Rounding of the mean may pass the bound, the counts cannot.
  return std::min(mean_skew(all_), 1 / static_cast<double>(request_.top_k));
}

std::optional<double> SyntheticRouting::persistence() const {
  if (request_.steps < 2) return std::nullopt;
  int64_t lasting = 0;
  for (int64_t step = 1; step < request_.steps; ++step) {
    for (int64_t layer = 0; layer < request_.layers; ++layer) {
      lasting += lasting_experts(first(step - 1, layer), first(step, layer));
    }
  }
  const int64_t most = (request_.steps - 1) * request_.layers * least_quarter(request_.experts);
  return static_cast<double>(lasting) / static_cast<double>(most);
}

std::optional<double> SyntheticRouting::token_hit() const {
  if (predicted_.empty()) return std::nullopt;
  return static_cast<double>(hits_) /
         static_cast<double>(request_.tokens * request_.steps * request_.layers);
}

std::optional<double> SyntheticRouting::foretold_least() const {
  if (predicted_.empty()) return std::nullopt;
  int64_t found = 0;
  for (int64_t step = 0; step < request_.steps; ++step) {
    for (int64_t layer = 0; layer < request_.layers; ++layer) {
      found += lasting_experts(first(step, layer), predicted(step, layer));
    }
  }
  const int64_t most = request_.steps * request_.layers * least_quarter(request_.experts);
  return static_cast<double>(found) / static_cast<double>(most);
}

}  // namespace hearth
