#include "model/adapters.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error_format.h"
#include "base/glob.h"
#include "base/random.h"
#include "base/setting.h"
#include "model/parameter_access.h"

namespace hearth {
namespace {

/// The group of a matrix that may get a pair; empty: none may.
std::string_view group_of(const ParameterTable& table, const Tensor& t) {
  if (t.vector || t.factor != Factor::none) return "";
  switch (table.block(t.block).kind) {
    case BlockKind::attention: return "attention";
    case BlockKind::router: return "router";
    case BlockKind::expert: return "experts";
    case BlockKind::shared: return t.slot == Slot::shared_gate ? "" : "shared-experts";
    case BlockKind::dense: return "dense";
    case BlockKind::head: return "head";
    case BlockKind::embedding:
    case BlockKind::adapter: break;
  }
  return "";
}

bool is_group(std::string_view target) {
  constexpr std::string_view kGroups[] = {
      "attention", "experts", "shared-experts", "dense", "router", "head", "all"};
  return std::find(std::begin(kGroups), std::end(kGroups), target) != std::end(kGroups);
}

/// Whether a target names a group: `all` names those of a layer, but not the router.
bool names_group(std::string_view target, std::string_view group) {
  if (target != "all") return target == group;
  return !group.empty() && group != "router" && group != "head";
}

bool is_chosen(const ExpertChoice& experts, const Block& block) {
  if (experts.empty() || block.kind != BlockKind::expert) return true;
  const auto& of_layer = experts[static_cast<size_t>(block.layer)];
  return std::find(of_layer.begin(), of_layer.end(), block.expert) != of_layer.end();
}

/// Marks in `chosen` the matrices that a target names.
class TargetFinder {
 public:
  TargetFinder(const ParameterTable& table, const PublishedLayout& layout)
      : table_(table), chosen_(table.tensors().size()) {
    published_.resize(chosen_.size());
    for (const PublishedTensor& tensor : layout.tensors()) {
      for (const TensorId id : tensor.parts) published_[static_cast<size_t>(id)] = &tensor.name;
    }
  }

  void choose(const std::string& target) {
    const bool group = is_group(target);
    if (target == "head" && !table_.find_slot(table_.find_block(BlockKind::head), Slot::head)) {
      throw usage_error(
          "{}: the head of this model is its embedding (tie_word_embeddings), so an adapter of it "
          "could not be loaded; leave head out",
          spelled(Setting::lora_targets, "head"));
    }
    bool matched = false;
    std::string no_map;
    for (size_t id = 0; id < chosen_.size(); ++id) {
      const Tensor& t = table_.tensors()[id];
      const std::string_view of = group_of(table_, t);
      if (group ? !names_group(target, of) : !matches(target, id)) continue;
      if (of.empty()) {
        no_map = t.name;
        continue;
      }
      chosen_[id] = matched = true;
    }
    if (matched) return;
    if (!no_map.empty()) {
      throw usage_error(
          "{}: {} is not a linear map, so it cannot have an adapter; use {} to train it",
          spelled(Setting::lora_targets, quoted(target)), quoted(no_map),
          spelled(Setting::trainable));
    }
    throw usage_error("{}: {}", spelled(Setting::lora_targets, quoted(target)),
                      group ? "the model has no such part; leave it out"
                            : "no tensor of the model has such a name; the groups are attention, "
                              "experts, shared-experts, dense, router, head and all, and 'hearth "
                              "inspect' "
                              "lists the tensors");
  }

  /// Takes back what a glob names.
  void leave_out(const std::string& glob) {
    for (size_t id = 0; id < chosen_.size(); ++id) {
      if (matches(glob, id)) chosen_[id] = false;
    }
  }

  bool is_chosen(TensorId id) const { return chosen_[static_cast<size_t>(id)]; }

 private:
  bool matches(const std::string& glob, size_t id) const {
    return glob_matches(glob, table_.tensors()[id].name) ||
           (published_[id] && glob_matches(glob, *published_[id]));
  }

  const ParameterTable& table_;
  std::vector<bool> chosen_;
  std::vector<const std::string*> published_;
};

}  // namespace

double AdapterOptions::scale_of(int64_t of_rank) const {
  const auto r = static_cast<double>(of_rank);
  return alpha / (rslora ? std::sqrt(r) : r);
}

void add_adapters(ParameterTable& table, const PublishedLayout& layout,
                  const AdapterOptions& options) {
  TargetFinder targets(table, layout);
  for (const std::string& target : options.targets) targets.choose(target);
  for (const std::string& glob : options.freeze) targets.leave_out(glob);
  const auto blocks = static_cast<BlockId>(table.blocks().size());
  for (BlockId id = 0; id < blocks; ++id) {
    const Block block = table.block(id);
    if (!is_chosen(options.experts, block)) continue;
    const int64_t rank = block.kind == BlockKind::expert ? options.expert_rank : options.rank;
    bool added = false;
    for (TensorId t = block.begin; t < block.end; ++t) {
      if (!targets.is_chosen(t)) continue;
      if (!added) table.add_adapter(id, options.scale_of(rank));
      added = true;
      table.add_low_rank(t, rank);
    }
  }
  if (!has_adapters(table)) {
    throw usage_error("{}: freezes every tensor that {} names, so no adapter is left; freeze fewer",
                      spelled(Setting::freeze), spelled(Setting::lora_targets));
  }
}

void init_adapters(ParameterTable& table, uint64_t seed) {
  constexpr int64_t kDrawnElements = int64_t{1} << 16;
  std::vector<float> values;
  std::vector<std::byte> staging;
  for (Tensor& t : table.tensors()) {
    if (t.factor == Factor::none || !table.block(t.block).present) continue;
    const View home{t.home().view};
    const uint64_t key = name_key(t.name);
    const Random random(seed, RandomSite::init, static_cast<uint32_t>(key),
                        static_cast<uint32_t>(key >> 32));
    const double bound = 1 / std::sqrt(static_cast<double>(t.cols));
    for (int64_t begin = 0; begin < t.size(); begin += kDrawnElements) {
      const int64_t n = std::min(kDrawnElements, t.size() - begin);
      values.assign(static_cast<size_t>(n), 0);
      for (int64_t i = 0; t.factor == Factor::a && i < n; ++i) {
        const double unit = 2 * random.uniform(static_cast<uint64_t>(begin + i)) - 1;
        values[static_cast<size_t>(i)] = static_cast<float>(bound * unit);
      }
      put_elements(table, t, home, begin, DType::f32, values.data(), n, staging);
    }
  }
}

bool has_adapters(const ParameterTable& table) {
  return !table.blocks().empty() && table.blocks().back().kind == BlockKind::adapter;
}

std::string_view report_group(const ParameterTable& table, const Tensor& t) {
  const Block& own = table.block(t.block);
  const BlockKind kind = own.kind == BlockKind::adapter ? table.block(own.base).kind : own.kind;
  if (t.slot == Slot::input_norm || t.slot == Slot::post_norm || t.slot == Slot::final_norm ||
      t.slot == Slot::q_norm || t.slot == Slot::k_norm) {
    return "norms";
  }
  switch (kind) {
    case BlockKind::embedding: return "embedding";
    case BlockKind::attention: return "attention";
    case BlockKind::router: return "router";
    case BlockKind::expert: return "experts";
    case BlockKind::shared: return "shared-experts";
    case BlockKind::dense: return "dense";
    default: return "head";
  }
}

std::vector<TrainedGroup> trained_groups(const ParameterTable& table) {
  constexpr std::string_view kOrder[] = {"embedding",      "attention", "router", "experts",
                                         "shared-experts", "dense",     "norms",  "head"};
  std::map<std::string_view, TrainedGroup> groups;
  for (const Tensor& t : table.tensors()) {
    TrainedGroup& group = groups[report_group(table, t)];
    if (t.factor == Factor::none) {
      ++group.tensors;
      group.parameters += t.size();
    }
    if (t.trainable) {
      ++group.trained_tensors;
      group.trained_parameters += t.size();
    }
  }
  std::vector<TrainedGroup> list;
  for (const std::string_view name : kOrder) {
    const auto found = groups.find(name);
    if (found == groups.end()) continue;
    found->second.name = name;
    list.push_back(found->second);
  }
  return list;
}

}  // namespace hearth
