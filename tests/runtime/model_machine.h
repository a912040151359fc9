// A machine whose tasks take what a test says, so that measuring it takes no time.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "device/host_device.h"
#include "runtime/profile_fixture.h"

namespace hearth::test {

/// A machine whose clock is moved by its tasks alone. A task takes a fixed part and one per token,
/// times what others take from it.
class ModelMachine {
 public:
  /// `load(n)`: by how much the n-th task is slower.
  explicit ModelMachine(std::function<double(int)> load) : load_(std::move(load)) {
    for (const TaskKind kind :
         {TaskKind::embed, TaskKind::attention, TaskKind::mlp, TaskKind::dispatch,
          TaskKind::experts, TaskKind::combine, TaskKind::head, TaskKind::norm, TaskKind::update}) {
      bodies_.push_back(std::make_unique<Decorated>(
          kind, [this, kind](const BodyContext& c) { run(kind, c); }, false));
    }
  }
  BenchPlace place() {
    BenchPlace place{*device_, cpu()};
    place.clock = [this] { return now_; };
    return place;
  }
  double now() const { return now_; }
  double longest() const { return longest_; }

  /// Seconds of a task on the quiet machine; of experts, of one of them.
  static double seconds(TaskKind kind, Phase phase, double tokens) {
    if (kind == TaskKind::norm || kind == TaskKind::update) return 4e-3;
    const double times = phase == Phase::backward ? 2 : 1;
    return times * (kind == TaskKind::experts ? 2e-3 + 2e-5 * tokens : 1e-3 + 4e-5 * tokens);
  }

 private:
  void run(TaskKind kind, const BodyContext& c) {
    const auto experts = kind == TaskKind::experts ? static_cast<double>(c.spec.experts) : 1;
    const double takes = experts * load_(tasks_++) *
                         seconds(kind, c.phase, static_cast<double>(c.batch.tokens) / experts);
    now_ += takes;
    longest_ = std::max(longest_, takes);
  }

  std::unique_ptr<Device> device_ = make_host_device(kPlenty);
  std::function<double(int)> load_;
  std::vector<std::unique_ptr<Decorated>> bodies_;
  double now_ = 100, longest_ = 0;
  int tasks_ = 0;
};

}  // namespace hearth::test
