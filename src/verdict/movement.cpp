#include "verdict/movement.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "model/adapters.h"

namespace hearth {

std::string PartMovement::name() const {
  if (factor == Factor::none) return group;
  return (factor == Factor::a ? "A of " : "B of ") + group;
}

std::vector<PartMovement> movement_by_part(const ParameterTable& table,
                                           const std::vector<TensorChange>& changes) {
  std::map<std::pair<std::string_view, Factor>, PartMovement> parts;
  for (const TensorChange& change : changes) {
    const Tensor& t = table.tensor(change.id);
    PartMovement& part = parts[{report_group(table, t), t.factor}];
    ++part.tensors;
    part.moved += change.moved;
    part.parameters += t.size();
    part.start_norm += change.start_square;
    part.update_norm += change.update_square;
    if (!change.moved && part.first_unmoved.empty()) part.first_unmoved = t.name;
  }
  std::vector<PartMovement> list;
  for (const TrainedGroup& group : trained_groups(table)) {
    for (const Factor factor : {Factor::none, Factor::a, Factor::b}) {
      const auto found = parts.find({group.name, factor});
      if (found == parts.end()) continue;
      PartMovement& part = found->second;
      part.group = group.name;
      part.factor = factor;
      part.start_norm = std::sqrt(part.start_norm);
      part.update_norm = std::sqrt(part.update_norm);
      list.push_back(part);
    }
  }
  return list;
}

namespace {

/// One expert's trained tensors.
struct Expert {
  bool moved = false;
  std::string unmoved;  // the first tensor that did not move and should have
};

}  // namespace

ExpertMovement movement_of_experts(const ParameterTable& table,
                                   const std::vector<TensorChange>& changes,
                                   const Routing& routing) {
  std::map<std::pair<int32_t, int32_t>, Expert> experts;  // by layer and number
  for (const TensorChange& change : changes) {
    const Tensor& t = table.tensor(change.id);
    const Block& own = table.block(t.block);
    const Block& block = own.kind == BlockKind::adapter ? table.block(own.base) : own;
    if (block.kind != BlockKind::expert) continue;
    Expert& expert = experts[{block.layer, block.expert}];
    expert.moved |= change.moved;
    // A has a gradient only once B is not 0: an expert with few tokens may move only B.
    if (change.moved || t.factor == Factor::a) continue;
    if (expert.unmoved.empty()) expert.unmoved = t.name;
  }
  ExpertMovement movement;
  movement.without_tokens.resize(routing.layers().size());
  for (const auto& [at, expert] : experts) {
    const auto [layer, number] = at;
    ++movement.trained;
    if (expert.moved) {
      ++movement.moved;
      if (!expert.unmoved.empty()) movement.in_part.push_back(expert.unmoved);
      continue;
    }
    const int64_t tokens = routing.experts(layer)[static_cast<size_t>(number)];
    if (tokens == 0) {
      const auto& layers = routing.layers();
      ++movement.without_tokens[static_cast<size_t>(
          std::lower_bound(layers.begin(), layers.end(), layer) - layers.begin())];
    } else if (tokens <= routing.without_gradient(layer)) {
      ++movement.without_gradient;
    } else {
      movement.forgotten.push_back(expert.unmoved);
    }
  }
  return movement;
}

}  // namespace hearth
