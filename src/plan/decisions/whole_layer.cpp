#include "plan/decisions/whole_layer.h"

#include "plan/decisions/split_model.h"

namespace hearth {

ExpertSplit split_all_on_device(const SplitProblem& problem) {
  const SplitModel model(problem);
  std::vector<uint8_t> on_device(static_cast<size_t>(problem.experts));
  int64_t room = problem.device_experts;
  for (const bool given : {true, false}) {
    for (const int32_t expert : model.ranking()) {
      if (room <= 0 || model.is_given(expert) != given) continue;
      on_device[static_cast<size_t>(expert)] = 1;
      --room;
    }
  }
  ExpertSplit split = model.split_of(on_device);
  for (const int32_t e : split.device) split.reasons[static_cast<size_t>(e)] = SplitReason::policy;
  for (const int32_t e : split.host) split.reasons[static_cast<size_t>(e)] = SplitReason::no_room;
  return split;
}

ExpertSplit split_all_on_host(const SplitProblem& problem) {
  return SplitModel(problem).split_of(std::vector<uint8_t>(static_cast<size_t>(problem.experts)));
}

}  // namespace hearth
