// Runs of several ranks, as threads, to compare their bits with those of one.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/file_ops.h"
#include "base/json.h"
#include "base/sanitized.h"
#include "train/same_bits.h"

namespace hearth::test {

inline const TrainedWith kFull{"qwen2_moe"};
inline const TrainedWith kLora{"qwen3_moe", 0.2};

/// Of a plan.json: `key` of the places `R/host` of ranks from 1 on, added up.
inline double other_hosts(const Json& plan, const char* key) {
  double sum = 0;
  for (const Json& place : plan.find("memory")->as_array()) {
    const std::string& name = place.find("place")->as_string();
    if (!name.ends_with("/host") || name.starts_with("0/")) continue;
    sum += place.find(key)->as_double();
  }
  return sum;
}

class RanksFixture : public SameBitsFixture {
 public:
  /// Three steps, each of `shards` logical shards of one micro-batch.
  TrainConfig config_of(const TrainedWith& with, const std::string& out, int64_t shards,
                        int64_t ranks) const {
    TrainConfig c = SameBitsFixture::config_of(with, out);
    c.micro_batch = 1;
    c.grad_accum = shards;
    c.logical_shards = shards;
    c.thread_ranks = ranks;
    c.parallel = ranks > 1 ? mode_ : "";
    c.expert_ranks = ranks > 1 && mode_ == "ep" ? expert_ranks_ : 0;
    c.attention_ranks = ranks > 1 && mode_ == "zebra" ? expert_ranks_ : 0;
    c.devices = ranks > 1 ? devices_ : "auto";
    c.direct = ranks > 1 && direct_;
    if (c.attention_ranks > 0) c.expert_shift = expert_shift_;
    c.threads = 1;
    c.max_grad_norm = 0.5;  // clips: ranks must agree on the norm
    c.recorded.push_back({"logical-shards", std::to_string(shards), false});
    return c;
  }

  /// Of runs of several ranks from here on. `expert_ranks`: 0, all ranks; of zebra the attention ranks.
  void set_mode(const std::string& mode, int64_t expert_ranks = 0) {
    mode_ = mode;
    expert_ranks_ = expert_ranks;
  }

  /// Of each rank of runs of several ranks from here on.
  void set_devices(const std::string& devices) { devices_ = devices; }
  /// TrainConfig::direct of runs of several ranks from here on.
  void set_direct(bool direct) { direct_ = direct; }
  /// Of zebra: TrainConfig::expert_shift of runs from here on. At first none.
  void set_expert_shift(std::optional<std::vector<int32_t>> shift) {
    expert_shift_ = std::move(shift);
  }

  RunBits bits_of(const TrainConfig& config) {
    unbind_thread();
    RecordingReporter reporter;
    RunBits bits;
    if (train(config, reporter) != ExitCode::done) return bits;
    for (const StepMetrics& m : reporter.steps) {
      bits.steps.emplace_back(m.loss, m.aux_loss, m.grad_norm);
    }
    const std::string out = config.out.substr(config.out.rfind('/') + 1);
    bits.root = root(out);
    bits.result = result(out);
    return bits;
  }

  RunBits bits_of(const TrainedWith& with, int64_t shards, int64_t ranks) {
    const TrainConfig config = config_of(with, "run" + std::to_string(runs_++), shards, ranks);
    RunBits bits = bits_of(config);
    remove_tree(config.out);
    return bits;
  }

  /// A way to run on several ranks; `sharing`: of set_mode; `devices`: of check_path.
  struct Way {
    int64_t ranks = 2;
    std::string mode = "dp";
    int64_t sharing = 0;
    std::string devices = "auto";
    std::vector<int32_t> shift = {};  // of check_path: TrainConfig::expert_shift
  };
  /// The bits of one rank, whatever the way.
  void check_bits(const TrainedWith& with, int64_t shards, const std::vector<Way>& ways) {
    const RunBits expected = bits_of(with, shards, 1);
    REQUIRE(expected.steps.size() == 3);
    for (const Way& way : ways) {
      INFO(text_of(with, {}) << " on " << way.ranks << " ranks, " << way.mode << " "
                             << way.sharing);
      set_mode(way.mode, way.sharing);
      CHECK(bits_of(with, shards, way.ranks) == expected);
    }
  }

  /// With groups of one and of two, recomputed or not: the bits of one rank. Two micro-batches a shard.
  void check_groups(const Way& way) {
    for (const TrainedWith& with : {kFull, kLora}) {
      TrainConfig config = config_of(with, "one" + with.family, 4, 1);
      config.grad_accum = 8;
      const RunBits expected = bits_of(config);
      REQUIRE(expected.steps.size() == 3);
      set_mode(way.mode, way.sharing);
      for (const bool recompute : {false, true}) {
        for (const int64_t group : {1, 2}) {
          if (kSanitized && (group > 1) != recompute) continue;
          TrainConfig shared = config_of(with, "shared", 4, way.ranks);
          shared.grad_accum = 8;
          shared.group = group;
          shared.recompute = recompute ? Recompute::blocks : Recompute::none;
          INFO(with.family << (recompute ? " recomputed" : "") << " in groups of " << group);
          CHECK(bits_of(shared) == expected);
          remove_tree(shared.out);
        }
      }
    }
  }

  /// A step each way, the last to the end: the state and the result of one rank.
  void check_path(const TrainedWith& with, const std::vector<Way>& path) {
    TrainConfig whole = config_of(with, "whole" + with.family, 4, 1);
    whole.steps = std::ssize(path);
    REQUIRE(run(whole) == ExitCode::done);
    TrainConfig parts = whole;
    parts.out = dir / ("parts" + with.family);
    for (size_t i = 0; i < path.size(); ++i) {
      const auto& [ranks, mode, sharing, devices, shift] = path[i];
      parts.thread_ranks = ranks;
      parts.parallel = ranks > 1 ? mode : "";
      parts.expert_ranks = ranks > 1 && mode == "ep" ? sharing : 0;
      parts.attention_ranks = ranks > 1 && mode == "zebra" ? sharing : 0;
      parts.devices = devices;
      parts.expert_shift = shift;
      const bool last = i + 1 == path.size();
      INFO("step " << i + 1 << " on " << ranks << " ranks " << mode);
      REQUIRE((last ? run(parts) : run_until(parts, static_cast<int64_t>(i) + 1)) ==
              (last ? ExitCode::done : ExitCode::stopped));
    }
    CHECK(root("parts" + with.family) == root("whole" + with.family));
    CHECK(result("parts" + with.family) == result("whole" + with.family));
  }

  /// A usage error that says so, and nothing is written.
  template <class Change>
  void check_refused(TrainConfig config, const std::string& part, const Change& change) {
    change(config);
    const Raised raised = raised_by([&] { run(config); });
    INFO(raised.message);
    CHECK(raised.code == ExitCode::usage);
    CHECK(raised.says(part));
    CHECK(file_info(config.out).kind == FileKind::none);
  }

 private:
  int runs_ = 0;
  std::string mode_ = "dp", devices_ = "auto";
  bool direct_ = false;
  int64_t expert_ranks_ = 0;
  std::optional<std::vector<int32_t>> expert_shift_ = std::vector<int32_t>();
};

}  // namespace hearth::test
