#include "plan/zebra/zebra_order.h"

#include <optional>
#include <set>

namespace hearth {

namespace {

/// What has to be done before, of the same micro-batch. The first stage has nothing before it.
std::optional<ZebraTask> before(const ZebraTask& task, int32_t layers) {
  ZebraTask first = task;
  const bool forward = task.phase == Phase::forward;
  first.experts = !task.experts;
  if (task.experts) {  // follow the stage that sends them their rows
    first.at = forward ? task.at : task.at + 1;
  } else if (forward) {
    if (task.at == 0) return std::nullopt;
    first.at = task.at - 1;
  } else if (task.at == layers) {  // the losses
    return ZebraTask{false, Phase::forward, layers, task.micro_batch};
  }
  return first;
}

}  // namespace

ZebraOrder theorem_1_order(int32_t layers, int32_t micro_batches) {
  ZebraOrder order;
  const auto all = [&](bool experts, Phase phase, int32_t at) {
    for (int32_t m = 0; m < micro_batches; ++m) order.push_back({experts, phase, at, m});
  };
  for (int32_t layer = 0; layer < layers; ++layer) {
    all(false, Phase::forward, layer);
    all(true, Phase::forward, layer);
  }
  for (int32_t m = 0; m < micro_batches; ++m) {
    order.push_back({false, Phase::forward, layers, m});
    order.push_back({false, Phase::backward, layers, m});
  }
  for (int32_t layer = layers - 1; layer >= 0; --layer) {
    all(true, Phase::backward, layer);
    all(false, Phase::backward, layer);
  }
  return order;
}

bool is_zebra_order(const ZebraOrder& order, int32_t layers, int32_t micro_batches) {
  std::set<ZebraTask> done;
  for (const ZebraTask& task : order) {
    const bool known = task.phase != Phase::recompute && task.at >= 0 &&
                       task.at < layers + (task.experts ? 0 : 1) && task.micro_batch >= 0 &&
                       task.micro_batch < micro_batches;
    if (!known) return false;
    const std::optional<ZebraTask> first = before(task, layers);
    if (first && !done.contains(*first)) return false;
    ZebraTask neighbour = task;
    if (--neighbour.micro_batch >= 0 && !done.contains(neighbour)) return false;
    if (!done.insert(task).second) return false;
  }
  return std::ssize(order) == int64_t{2} * (2 * layers + 1) * micro_batches;
}

std::vector<int32_t> numbers_of(const ZebraOrder& order) {
  std::vector<int32_t> numbers;
  for (const auto& [experts, phase, at, micro_batch] : order) {
    const int32_t backward = phase == Phase::forward ? 0 : 1;
    numbers.insert(numbers.end(), {experts ? 1 : 0, backward, at, micro_batch});
  }
  return numbers;
}

ZebraOrder order_of(std::span<const int32_t> numbers) {
  ZebraOrder order;
  for (; numbers.size() >= 4; numbers = numbers.subspan(4)) {
    const Phase phase = numbers[1] == 0 ? Phase::forward : Phase::backward;
    order.push_back({numbers[0] != 0, phase, numbers[2], numbers[3]});
  }
  return order;
}

}  // namespace hearth
