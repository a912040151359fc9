#include "train/step_parts.h"

#include <algorithm>
#include <functional>

namespace hearth {

namespace {

/// A part as numbers: times and tokens, bytes sent by rank, losses, tokens of experts.
std::vector<double> packed(const StepPart& part, World& world) {
  std::vector<double> numbers{part.time_s, part.wait_s, part.tokens, double(part.signal)};
  std::vector<int64_t> sent = world.sent_bytes();
  if (part.between_devices != nullptr) {
    const std::vector<int64_t> more = part.between_devices->sent_bytes();
    std::ranges::transform(sent, more, sent.begin(), std::plus<>());
  }
  for (const int64_t bytes : sent) numbers.push_back(static_cast<double>(bytes));
  for (const MicroLosses& of : part.losses) {
    numbers.insert(numbers.end(), {of.loss, of.aux_loss, of.z_loss});
  }
  for (const std::vector<double>& layer : part.expert_tokens) {
    numbers.insert(numbers.end(), layer.begin(), layer.end());
  }
  return numbers;
}

}  // namespace

std::vector<RankStep> join_parts(RankTeam& team, StepPart& part) {
  const std::vector<double> own = packed(part, team.world());
  const size_t bytes = own.size() * sizeof(double);
  std::vector<std::vector<double>> all(static_cast<size_t>(team.size()), own);
  std::vector<Bytes> from;
  for (std::vector<double>& of : all)
    from.push_back({reinterpret_cast<std::byte*>(of.data()), bytes});
  team.comm().wait_for(team.comm().gather(
      team.next(), {reinterpret_cast<const std::byte*>(own.data()), bytes}, from));

  const size_t micro_batches = part.losses.size();
  part.losses.clear();
  for (std::vector<double>& layer : part.expert_tokens) layer.assign(layer.size(), 0);
  std::vector<RankStep> steps;
  for (int32_t rank = 0; rank < team.size(); ++rank) {
    const double* next = all[static_cast<size_t>(rank)].data();
    RankStep& step = steps.emplace_back();
    step.rank = rank;
    step.host = team.world().host(rank);
    step.time_s = *next++;
    step.wait_s = *next++;
    step.tokens = static_cast<int64_t>(*next++);
    if (const auto signal = static_cast<int>(*next++); signal != 0) part.signal = signal;
    for (int32_t to = 0; to < team.size(); ++to) {
      step.sent_bytes.push_back(static_cast<int64_t>(*next++));
    }
    for (size_t m = 0; m < micro_batches; ++m, next += 3) {
      part.losses.push_back({next[0], next[1], next[2]});
    }
    for (std::vector<double>& layer : part.expert_tokens) {
      for (double& tokens : layer) tokens += *next++;
    }
  }
  return steps;
}

}  // namespace hearth
