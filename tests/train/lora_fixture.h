// Runs that train adapters, over the checkpoint and data of TrainingFixture.
#pragma once

#include <map>
#include <string>

#include "budget/plan_time.h"
#include "train/training_fixture.h"

namespace hearth::test {

class LoraFixture : public TrainingFixture {
 public:
  AssumedRates quick;

  /// As TrainingFixture::config, of adapters on every group that the model has, with dropout.
  TrainConfig lora(const std::string& out) const {
    TrainConfig c = config(out);
    c.method = Method::lora;
    c.steps = 6;
    c.threads = 1;
    c.lora_rank = 4;
    c.expert_rank = 2;
    c.lora_alpha = 8;
    c.lora_dropout = 0.2;
    c.lora_targets = {"attention", "experts", "dense"};
    c.recorded.push_back({"method", "lora", false});
    return c;
  }

  /// Files of the adapter or the model that a run wrote, by name.
  std::map<std::string, std::string> files(const std::string& directory) const {
    std::map<std::string, std::string> all;
    for (const std::string& name : list_directory(dir / directory)) {
      all[name] = read_file(dir / (directory + "/" + name));
    }
    return all;
  }
};

}  // namespace hearth::test
