#include "model/published_layout.h"

#include <algorithm>

#include "base/error.h"

namespace hearth {
namespace {

constexpr std::string_view kExperts = ".experts.";
constexpr std::string_view kGateUp = "gate_up_proj";
constexpr std::string_view kDown = "down_proj";

std::vector<int64_t> shape_of(const Tensor& tensor) {
  if (tensor.vector) return {tensor.cols};
  return {tensor.rows, tensor.cols};
}

/// The fused tensor beside an expert's tensor, or beside the other fused one.
std::string fused_name(const std::string& beside, std::string_view last) {
  const size_t at = beside.find(kExperts);
  HEARTH_CHECK(at != std::string::npos, "published layout: no expert's name: " + beside);
  return beside.substr(0, at + kExperts.size()).append(last);
}

}  // namespace

/// Fills a layout, walking the table once.
class LayoutDetector {
 public:
  LayoutDetector(const ParameterTable& table, const Family& family,
                 const PublishedLayout::Stored& stored, const std::string& source)
      : table_(table), family_(family), stored_(stored), source_(source) {}

  void fill(PublishedLayout& layout) const {
    const auto blocks = static_cast<BlockId>(table_.blocks().size());
    for (BlockId begin = 0; begin < blocks;) {
      const BlockId end = end_of_experts(begin);
      if (end == begin + 1 && table_.block(begin).kind != BlockKind::expert) {
        add_each(layout, begin, end);
      } else if (is_fused(begin, end)) {
        add_fused(layout, begin, end);
        layout.has_fused_ = true;
      } else {
        add_each(layout, begin, end);
        layout.has_per_expert_ = true;
      }
      begin = end;
    }
  }

 private:
  const Tensor& part(BlockId block, Slot slot) const {
    const auto id = table_.find_slot(block, slot);
    HEARTH_CHECK(id.has_value(), "published layout: an expert without the asked weight");
    return table_.tensor(*id);
  }

  /// One past the experts of the layer that begin here; of another block, one past itself.
  BlockId end_of_experts(BlockId begin) const {
    const Block& first = table_.block(begin);
    const auto blocks = static_cast<BlockId>(table_.blocks().size());
    BlockId end = begin + 1;
    while (first.kind == BlockKind::expert && end < blocks &&
           table_.block(end).kind == first.kind && table_.block(end).layer == first.layer) {
      ++end;
    }
    return end;
  }

  /// The name under which the checkpoint has a tensor; the family's if it does not have it.
  std::string spelled(const std::string& name) const {
    const std::string other = family_.other_name(name);
    if (other.empty() || !stored_(other)) return name;
    if (stored_(name)) {
      throw input_error(source_ + ": tensor " + quoted(name) + " is stored a second time as " +
                        quoted(other) + "; keep one of the two");
    }
    return other;
  }

  bool is_fused(BlockId begin, BlockId end) const {
    std::string fused;
    for (const std::string_view last : {kGateUp, kDown}) {
      const std::string name = spelled(fused_name(part(begin, Slot::gate).name, last));
      if (fused.empty() && stored_(name)) fused = name;
    }
    if (fused.empty()) return false;
    for (TensorId id = table_.block(begin).begin; id < table_.block(end - 1).end; ++id) {
      const std::string name = spelled(table_.tensor(id).name);
      if (!stored_(name)) continue;
      throw input_error(source_ + ": layer " + std::to_string(table_.block(begin).layer) +
                        " has experts in two layouts, fused in " + quoted(fused) +
                        " and one by one in " + quoted(name) + "; keep one of the two");
    }
    return true;
  }

  void add_each(PublishedLayout& layout, BlockId begin, BlockId end) const {
    for (TensorId id = table_.block(begin).begin; id < table_.block(end - 1).end; ++id) {
      const Tensor& tensor = table_.tensor(id);
      layout.add(spelled(tensor.name), shape_of(tensor), {id});
    }
  }

  void add_fused(PublishedLayout& layout, BlockId begin, BlockId end) const {
    const Tensor& gate = part(begin, Slot::gate);
    const Tensor& down = part(begin, Slot::down);
    std::vector<TensorId> gate_up, downs;
    for (BlockId block = begin; block < end; ++block) {
      gate_up.push_back(*table_.find_slot(block, Slot::gate));
      gate_up.push_back(*table_.find_slot(block, Slot::up));
      downs.push_back(*table_.find_slot(block, Slot::down));
    }
    std::string gate_up_name = spelled(fused_name(gate.name, kGateUp));
    std::string down_name = spelled(fused_name(gate.name, kDown));
    // A missing one is asked for beside the other.
    if (!stored_(gate_up_name)) gate_up_name = fused_name(down_name, kGateUp);
    if (!stored_(down_name)) down_name = fused_name(gate_up_name, kDown);
    const int64_t experts = end - begin;
    layout.add(std::move(gate_up_name), {experts, 2 * gate.rows, gate.cols}, std::move(gate_up));
    layout.add(std::move(down_name), {experts, down.rows, down.cols}, std::move(downs));
  }

  const ParameterTable& table_;
  const Family& family_;
  const PublishedLayout::Stored& stored_;
  const std::string& source_;
};

PublishedLayout::PublishedLayout(const ParameterTable& table, const Family& family,
                                 const Stored& stored, const std::string& source) {
  LayoutDetector(table, family, stored, source).fill(*this);
}

void PublishedLayout::add(std::string name, std::vector<int64_t> shape,
                          std::vector<TensorId> parts) {
  by_name_.emplace(name, tensors_.size());
  tensors_.push_back({std::move(name), std::move(shape), std::move(parts)});
}

const PublishedTensor* PublishedLayout::find(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

ExpertLayout PublishedLayout::experts() const {
  if (has_fused_ && has_per_expert_) return ExpertLayout::mixed;
  return has_fused_ ? ExpertLayout::fused : ExpertLayout::per_expert;
}

int64_t parts_bound(const std::string& name, const std::vector<int64_t>& shape, uint64_t bytes) {
  const bool gate_up = name.ends_with(std::string(kExperts).append(kGateUp));
  if (!gate_up && !name.ends_with(std::string(kExperts).append(kDown))) return 1;
  const uint64_t first = shape.empty() ? 0 : static_cast<uint64_t>(shape[0]);
  constexpr uint64_t kMost = uint64_t{1} << 20;  // sums of it stay small
  return static_cast<int64_t>(std::min({first, bytes, kMost})) * (gate_up ? 2 : 1);
}

}  // namespace hearth
