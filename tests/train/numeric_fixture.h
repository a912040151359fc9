// Runs whose steps are made not finite: by token 7 in the data, or by faults that are planted
// before a step (src/layers).
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "support/planted.h"
#include "training_fixture.h"

namespace hearth::test {

/// Rows of ids, one sequence each, four a step in two micro-batches. Those of the bad steps have a
/// token 7 (in the second micro-batch alone), which makes them not finite where it is planted.
class NumericFixture : public TrainingFixture {
 public:
  static constexpr int kSteps = 6;

  /// The run's data and options; `bad` steps from 1.
  TrainConfig poisoned(const std::string& out, const std::vector<int>& bad) const {
    std::string rows;
    for (int step = 1; step <= kSteps; ++step) {
      for (int row = 0; row < 4; ++row) {
        const bool poison = row == 2 && std::count(bad.begin(), bad.end(), step) > 0;
        rows += "{\"input_ids\": [" + std::to_string(20 + step) + ", 30, " +
                (poison ? "7" : std::to_string(40 + row)) + ", 50, 60]}\n";
      }
    }
    write(dir / (out + ".jsonl"), rows);
    TrainConfig c = config(out);
    c.data = {dir / (out + ".jsonl")};
    c.steps = kSteps;
    c.micro_batch = 2;
    c.grad_accum = 2;
    c.warmup = 0;
    c.packing = false;
    c.shuffle = false;
    c.save_every.steps = 1;
    c.keep = 2;
    return c;
  }

  /// What a state holds, the root without counters: weights and moments.
  std::vector<Digest> weights_of(const std::string& out, int64_t step) const {
    const SavedState state = verify_state(dir / (out + "/state/" + state_directory_name(step)));
    std::vector<Digest> digests;
    for (const StateDigest::Item& item : state.digest.components) {
      if (item.name != "progress" && item.name != "routing") digests.push_back(item.digest);
    }
    CHECK(digests.size() == 3);
    return digests;
  }

  std::vector<std::string> events(const std::string& out, const std::string& event) const {
    std::vector<std::string> found;
    for (const std::string& line : lines(out + "/journal.jsonl")) {
      if (line.find("\"event\": \"" + event + "\"") != std::string::npos) found.push_back(line);
    }
    return found;
  }
};

/// Plants a fault for the steps named, from 1: `before(step)` is called ahead of each.
class FaultOfSteps {
 public:
  FaultOfSteps(std::string fault, std::vector<int64_t> steps)
      : fault_(std::move(fault)), steps_(std::move(steps)) {
    before(1);
  }
  void before(int64_t step) {
    planted_.reset();
    if (std::count(steps_.begin(), steps_.end(), step) > 0) {
      planted_ = std::make_unique<PlantedFault>(fault_);
    }
  }

 private:
  std::string fault_;
  std::vector<int64_t> steps_;
  std::unique_ptr<PlantedFault> planted_;
};

}  // namespace hearth::test
