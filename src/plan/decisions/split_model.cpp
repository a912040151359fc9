#include "plan/decisions/split_model.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"

namespace hearth {

namespace {

/// Over the micro-batches that are known, and in proportion over the others.
double call_seconds(const SplitProblem& p, const CostEntry& entry, ExpertCalls calls,
                    int64_t expert, double all) {
  if (all <= 0) return 0;
  if (calls == ExpertCalls::per_group) return entry.at(all);
  double seconds = 0;
  for (int64_t m = 0; m < p.known(); ++m) {
    const double tokens = p.tokens[static_cast<size_t>(m * p.experts + expert)];
    if (tokens > 0) seconds += entry.at(tokens);
  }
  return seconds * p.micro_batches / static_cast<double>(p.known());
}

double call_count(const SplitProblem& p, int64_t expert, double all) {
  if (all <= 0) return 0;
  if (p.host_calls == ExpertCalls::per_group) return 1;
  double calls = 0;
  for (int64_t m = 0; m < p.known(); ++m) {
    calls += p.tokens[static_cast<size_t>(m * p.experts + expert)] > 0 ? 1 : 0;
  }
  return calls * p.micro_batches / static_cast<double>(p.known());
}

/// What is here, what is coming, what would have to be loaded.
int arrival_class(const ExpertState& state) {
  if (state.where == Where::here) return 0;
  return state.where == Where::coming ? 1 : 2;
}

/// Of a byte that crosses a link: what is read and written to bring it into one piece, and to add it to
/// what is there.
constexpr double kPackedBytes = 2, kJoinedBytes = 3;

void check_problem(const SplitProblem& p) {
  HEARTH_CHECK(p.experts > 0 && !p.tokens.empty() && std::ssize(p.tokens) % p.experts == 0 &&
                   p.known() <= p.micro_batches,
               "split: tokens of other shape");
  HEARTH_CHECK(!p.passes.empty() && p.device_experts >= 0,
               "split: no passes, or no number of slots");
  for (const SplitPass& pass : p.passes) {
    HEARTH_CHECK(
        std::ssize(pass.experts) == p.experts && pass.host != nullptr && pass.device != nullptr,
        "split: a pass without experts or times");
  }
}

}  // namespace

double link_seconds(const LinkRate& link, double bytes) {
  if (bytes <= 0) return 0;
  return link.latency_s + (link.bytes_per_s > 0 ? bytes / link.bytes_per_s : 0);
}

double PassTimes::makespan() const { return std::max({device, host, in, out, memory}); }

SplitModel::SplitModel(const SplitProblem& problem) : problem_(problem) {
  check_problem(problem);
  const auto experts = static_cast<size_t>(problem.experts);
  tokens_.resize(experts);
  for (size_t i = 0; i < problem.tokens.size(); ++i) tokens_[i % experts] += problem.tokens[i];
  const double scale = problem.micro_batches / static_cast<double>(problem.known());
  for (size_t e = 0; e < experts; ++e) {
    tokens_[e] *= scale;
    all_tokens_ += tokens_[e];
    host_calls_.push_back(call_count(problem, static_cast<int64_t>(e), tokens_[e]));
    if (tokens_[e] > 0) ranking_.push_back(static_cast<int32_t>(e));
  }
  std::stable_sort(ranking_.begin(), ranking_.end(),
                   [this](int32_t a, int32_t b) { return tokens(a) > tokens(b); });
  for (const SplitPass& pass : problem.passes) {
    Costs costs;
    for (size_t e = 0; e < experts; ++e) {
      const auto expert = static_cast<int64_t>(e);
      costs.host_s.push_back(
          call_seconds(problem, *pass.host, problem.host_calls, expert, tokens_[e]));
      costs.device_s.push_back(
          call_seconds(problem, *pass.device, problem.device_calls, expert, tokens_[e]));
      // What is coming passes the link before loads of this decision (SplitPass::in_free_s).
      const bool is_load = arrival_class(pass.experts[e]) == 2;
      costs.bytes.push_back(is_load ? pass.experts[e].bytes_left : 0);
      costs.load_s.push_back(link_seconds(problem.in, costs.bytes.back()));
    }
    costs.order = ranking_;
    std::stable_sort(costs.order.begin(), costs.order.end(), [&](int32_t a, int32_t b) {
      const auto key = [&](int32_t e) {
        const ExpertState& state = pass.experts[static_cast<size_t>(e)];
        const int of = arrival_class(state);
        return std::tuple(of, of == 1 ? state.here_in_s : 0.0);
      };
      return key(a) < key(b);
    });
    costs.gradient_s = link_seconds(problem.out, pass.gradient_bytes);
    costs_.push_back(std::move(costs));
  }
}

PassTimes SplitModel::times(size_t pass, std::span<const uint8_t> on_device,
                            DividedShare divided) const {
  const SplitPass& p = problem_.passes[pass];
  const Costs& costs = costs_[pass];
  PassTimes t;
  double loaded = p.in_free_s, gradients = 0, host_s = 0, rows = 0, bytes = 0;
  bool loads = false;
  for (const int32_t expert : costs.order) {
    const auto e = static_cast<size_t>(expert);
    if (on_device[e] == 0) {
      host_s += costs.host_s[e];
      rows += tokens_[e];
      bytes += host_calls_[e] * p.host_call_bytes;
      continue;
    }
    const ExpertState& state = p.experts[e];
    double arrives = 0;
    if (costs.bytes[e] > 0) {
      loaded += costs.load_s[e];
      arrives = loaded;
      loads = true;
      bytes += costs.bytes[e];
    } else if (state.where == Where::coming) {
      arrives = state.here_in_s;
    }
    t.device = std::max(t.device, arrives) + costs.device_s[e];
    gradients += costs.gradient_s;
    bytes += p.gradient_bytes;
  }
  double packed = 0, joined = 0;
  if (divided.expert >= 0) {
    const auto e = static_cast<size_t>(divided.expert);
    const double memory = problem_.memory_bytes_per_s;
    const double in = divided.share * problem_.expert_bytes * problem_.groups;
    const double out = divided.share * p.gradient_bytes * problem_.groups;
    if (memory > 0) {
      packed = kPackedBytes * in / memory;
      joined = kJoinedBytes * out / memory;
    }
    loaded = std::max(loaded, packed) + link_seconds(problem_.in, in);
    loads = true;
    t.device = std::max(t.device, loaded) + divided.share * costs.device_s[e];
    host_s -= divided.share * costs.host_s[e];
    gradients += link_seconds(problem_.out, out);
    bytes += (1 + kPackedBytes) * in + (1 + kJoinedBytes) * out -
             divided.share * host_calls_[e] * p.host_call_bytes;
  }
  const double sent = all_tokens_ * p.choice_out_bytes;
  const double rows_out = link_seconds(problem_.out, sent);
  const double rows_in = link_seconds(problem_.in, rows * p.row_in_bytes);
  if (host_s > 0) t.host = std::max(rows_out, p.host_free_s) + host_s + rows_in + joined;
  t.in = (loads ? loaded : 0) + rows_in;
  t.out = (gradients > 0 ? p.out_free_s + gradients : 0) + rows_out;
  bytes += sent + rows * p.row_in_bytes;
  if (problem_.memory_bytes_per_s > 0) t.memory = bytes / problem_.memory_bytes_per_s;
  return t;
}

double SplitModel::seconds(std::span<const uint8_t> on_device, DividedShare divided) const {
  double sum = 0;
  for (size_t pass = 0; pass < costs_.size(); ++pass) {
    sum += times(pass, on_device, divided).makespan();
  }
  return sum;
}

double SplitModel::host_seconds(size_t pass, int32_t expert) const {
  return costs_[pass].host_s[static_cast<size_t>(expert)];
}

double SplitModel::load_seconds(size_t pass, int32_t expert) const {
  return costs_[pass].load_s[static_cast<size_t>(expert)];
}

double SplitModel::host_seconds(int32_t expert) const {
  double sum = 0;
  for (size_t pass = 0; pass < costs_.size(); ++pass) sum += host_seconds(pass, expert);
  return sum;
}

double SplitModel::device_seconds(int32_t expert) const {
  const auto e = static_cast<size_t>(expert);
  double sum = 0;
  for (const Costs& costs : costs_) sum += costs.load_s[e] + costs.device_s[e];
  return sum;
}

bool SplitModel::is_given(int32_t expert) const {
  return std::all_of(problem_.passes.begin(), problem_.passes.end(), [&](const SplitPass& pass) {
    return arrival_class(pass.experts[static_cast<size_t>(expert)]) < 2;
  });
}

bool SplitModel::is_away(int32_t expert) const {
  return arrival_class(problem_.passes.front().experts[static_cast<size_t>(expert)]) == 2;
}

ExpertSplit SplitModel::split_of(std::span<const uint8_t> on_device) const {
  ExpertSplit split;
  split.reasons.resize(tokens_.size());
  split.predicted_s = seconds(on_device);
  for (const int32_t expert : costs_.front().order) {
    const auto e = static_cast<size_t>(expert);
    if (on_device[e] == 0) continue;
    split.device.push_back(expert);
    switch (problem_.passes.front().experts[e].where) {
      case Where::here: split.reasons[e] = SplitReason::resident; break;
      case Where::coming:
      case Where::queued: split.reasons[e] = SplitReason::prefetched; break;
      case Where::home:
      case Where::leaving: split.reasons[e] = SplitReason::loaded; break;
    }
  }
  for (const int32_t expert : ranking_) {
    const auto e = static_cast<size_t>(expert);
    if (on_device[e] != 0) continue;
    split.host.push_back(expert);
    split.reasons[e] = SplitReason::policy;
  }
  return split;
}

}  // namespace hearth
