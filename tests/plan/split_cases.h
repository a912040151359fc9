// Problems of splits for tests: they own what a problem looks at.
#pragma once

#include <random>
#include <vector>

#include "plan/decisions/split_problem.h"

namespace hearth::test {

/// seconds = base + each * tokens, at 1 and at a million tokens.
inline CostEntry line(double base, double each, Phase phase = Phase::forward) {
  CostEntry entry;
  entry.kind = TaskKind::experts;
  entry.phase = phase;
  entry.units = {1, 1'000'000};
  entry.seconds = {base + each, base + each * 1e6};
  return entry;
}

struct SplitCase {
  std::vector<double> tokens;
  std::vector<std::vector<ExpertState>> states;  // by pass
  std::vector<CostEntry> host, device;           // by pass
  std::vector<SplitPass> passes;
  SplitProblem problem;

  /// `experts` at home, one pass; all else as the members say before `get`.
  explicit SplitCase(int64_t experts, int passes_count = 1) {
    problem.experts = experts;
    for (int i = 0; i < passes_count; ++i) {
      states.emplace_back(static_cast<size_t>(experts));
      host.push_back(line(0, 1));
      device.push_back(line(0, .1));
      passes.emplace_back();
    }
  }
  SplitCase(const SplitCase&) = delete;
  SplitCase& operator=(const SplitCase&) = delete;

  ExpertState& state(size_t expert, size_t pass = 0) { return states[pass][expert]; }
  void set_bytes(double bytes) {
    for (auto& pass : states) {
      for (ExpertState& s : pass) s.bytes_left = bytes;
    }
    problem.expert_bytes = bytes;
  }
  const SplitProblem& get() {
    for (size_t i = 0; i < passes.size(); ++i) {
      passes[i].experts = states[i];
      passes[i].host = &host[i];
      passes[i].device = &device[i];
    }
    problem.tokens = tokens;
    problem.passes = passes;
    return problem;
  }
};

/// Any problem with this many experts: states, speeds, latencies, passes, memory and room at random, in
/// ranges in which all resources matter.
struct RandomSplitCase : SplitCase {
  RandomSplitCase(std::mt19937_64& random, int64_t experts)
      : SplitCase(experts, 1 + static_cast<int>(random() % 2)) {
    const auto uniform = [&](double low, double high) {
      return std::uniform_real_distribution<double>(low, high)(random);
    };
    const auto log_uniform = [&](double low, double high) {
      return std::exp(uniform(std::log(low), std::log(high)));
    };
    const bool coin = random() % 2 == 0;
    problem.micro_batches = 1 + static_cast<int32_t>(random() % 4);
    const auto known =
        1 + static_cast<int64_t>(random() % static_cast<uint64_t>(problem.micro_batches));
    const double skew = uniform(0, 4);
    for (int64_t i = 0; i < known * experts; ++i) {
      const double n = std::floor(200 * std::pow(uniform(0, 1), skew));
      tokens.push_back(random() % 8 == 0 ? 0 : n);
    }
    problem.host_calls = coin ? ExpertCalls::per_group : ExpertCalls::per_micro_batch;
    problem.device_calls =
        random() % 2 == 0 ? ExpertCalls::per_group : ExpertCalls::per_micro_batch;
    const double bytes = 1e6;
    set_bytes(bytes);
    problem.in = {log_uniform(1e7, 1e9), random() % 2 == 0 ? 0 : uniform(0, .01)};
    problem.out = {log_uniform(1e7, 1e9), random() % 2 == 0 ? 0 : uniform(0, .01)};
    problem.memory_bytes_per_s = random() % 2 == 0 ? 0 : log_uniform(1e7, 1e9);
    problem.dense_bytes = uniform(0, 3 * bytes);
    if (random() % 3 == 0)
      problem.device_experts =
          static_cast<int64_t>(random() % (static_cast<uint64_t>(experts) + 1));
    for (size_t p = 0; p < passes.size(); ++p) {
      host[p] = line(log_uniform(1e-4, 1e-2), log_uniform(1e-5, 1e-3));
      device[p] = line(log_uniform(1e-5, 1e-3), log_uniform(1e-6, 1e-4));
      double in_free = 0;
      for (ExpertState& s : states[p]) {
        const auto kind = random() % 5;
        s.where =
            std::vector{Where::home, Where::home, Where::here, Where::coming, Where::queued}[kind];
        if (s.where == Where::here) s.bytes_left = 0;
        if (s.where == Where::coming) {
          s.bytes_left = uniform(0, bytes);
          s.here_in_s = in_free += s.bytes_left / problem.in.bytes_per_s;
        }
      }
      passes[p].in_free_s = in_free + (random() % 2 == 0 ? uniform(0, .02) : 0);
      passes[p].out_free_s = random() % 2 == 0 ? uniform(0, .02) : 0;
      passes[p].host_free_s = random() % 2 == 0 ? uniform(0, .02) : 0;
      passes[p].gradient_bytes = p == 1 ? bytes : 0;
      passes[p].row_in_bytes = uniform(0, 2000);
      passes[p].choice_out_bytes = uniform(0, 2000);
      passes[p].host_call_bytes = bytes * uniform(0, 2);
    }
  }
};

}  // namespace hearth::test
