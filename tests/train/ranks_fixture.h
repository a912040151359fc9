// Runs of several ranks, as threads, to compare their bits with those of one.
#pragma once

#include <string>

#include "base/file_ops.h"
#include "train/same_bits.h"

namespace hearth::test {

inline const TrainedWith kFull{"qwen2_moe"};
inline const TrainedWith kLora{"qwen3_moe", 0.2};

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

 private:
  int runs_ = 0;
  std::string mode_ = "dp";
  int64_t expert_ranks_ = 0;
};

}  // namespace hearth::test
