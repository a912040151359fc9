// Homes of experts with a content that says which tensor and which version it is, for tests of
// residency.
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "device/virtual_device.h"
#include "runtime/residency.h"

namespace hearth::test {

/// A virtual device whose links carry so many bytes per second; 0: no limit.
inline VirtualOptions paced(double in, double out = 0) {
  VirtualOptions options;
  options.h2d = in;
  options.d2h = out;
  return options;
}

struct HomeShape {
  int32_t experts = 4;
  int64_t hidden = 64, width = 48;
  int64_t rank = 0;           // of adapters; then the bases are frozen
  bool freezes_gate = false;  // one of the three matrices: of another role, in another arena
};

/// The experts of one layer, bf16 working copies and f32 accumulators.
class ResidencyHomes {
 public:
  explicit ResidencyHomes(const HomeShape& shape = {}) : policy{true, Compute::bf16, DType::f32} {
    for (int32_t e = 0; e < shape.experts; ++e) {
      const std::string name = "expert " + std::to_string(e);
      experts.push_back(table.add_block(BlockKind::expert, 0, e));
      table.add_tensor(name + " gate.weight", Slot::gate, shape.width, shape.hidden, false);
      table.add_tensor(name + " up.weight", Slot::up, shape.width, shape.hidden, false);
      table.add_tensor(name + " down.weight", Slot::down, shape.hidden, shape.width, false);
    }
    const auto of_base = static_cast<TensorId>(table.tensors().size());
    for (TensorId id = 0; id < of_base; ++id) {
      Tensor& tensor = table.tensor(id);
      tensor.stored = DType::bf16;
      tensor.trainable = shape.rank == 0 && !(shape.freezes_gate && tensor.slot == Slot::gate);
    }
    for (const BlockId expert : experts) {
      if (shape.rank == 0) break;
      table.add_adapter(expert, 2.0);
      for (TensorId id = table.block(expert).begin; id < table.block(expert).end; ++id) {
        table.add_low_rank(id, shape.rank);
      }
    }
    PlaceArenas at{};
    for (const ParameterArena& arena : parameter_arenas(table, policy)) {
      memory.push_back(std::make_unique<Arena>(arena.name, arena.bytes));
      at[static_cast<size_t>(arena.role)] = memory.back()->data();
    }
    bind_parameters(table, policy, at);
    for (TensorId id = 0; id < static_cast<TensorId>(table.tensors().size()); ++id) write(id);
  }

  /// A plan with so many slots for weights, and for accumulators.
  SlotPlan plan(int32_t weights, int32_t gradients, size_t piece_bytes = size_t{1} << 20) const {
    SlotPlan plan;
    plan.blocks = experts;
    plan.policy = policy;
    const auto add = [&](BlockId block, Cargo cargo, int32_t slots) {
      const size_t bytes = slot_layout(table, block, cargo, policy).slot_bytes();
      if (bytes == 0) return;
      for (const SlotClass& c : plan.classes) {
        if (c.bytes == bytes) return;
      }
      plan.classes.push_back({bytes, slots, std::min(slots, 2)});
    };
    const BlockId first = experts.front();
    add(first, Cargo::weights, weights);
    add(first, Cargo::gradient, gradients);
    if (const auto adapter = table.adapter_of(first)) {
      add(*adapter, Cargo::weights, weights);
      add(*adapter, Cargo::gradient, gradients);
    }
    plan.settings.piece_bytes = piece_bytes;
    plan.settings.window_bytes = 3 * piece_bytes;
    plan.settings.in_bytes_per_s = plan.settings.out_bytes_per_s = 1e9;
    plan.leases = 8;
    return plan;
  }

  /// Gives the weights of a tensor the content of its version.
  void write(TensorId id) {
    const ConstView view = table.weight(id);
    auto* const words = static_cast<uint32_t*>(const_cast<void*>(view.data));
    for (size_t i = 0; i < view.bytes() / sizeof(uint32_t); ++i) words[i] = word(id, i);
  }
  void write_block(BlockId block) {
    for (TensorId id = table.block(block).begin; id < table.block(block).end; ++id) write(id);
  }
  /// A new version of all trained tensors, with the gradient cleared, as an optimizer leaves them.
  void update(BlockId block) {
    for (TensorId id = table.block(block).begin; id < table.block(block).end; ++id) {
      if (!table.tensor(id).trainable) continue;
      const bool has_working =
          table.tensor(id).copies[static_cast<int>(CopyRole::working)].present();
      table.mark_updated(id, has_working);
      write(id);
      const View gradient = table.gradient(id);
      std::memset(gradient.raw(), 0, gradient.bytes());
    }
  }
  void add_to_gradient(BlockId block, float value) {
    for (TensorId id = table.block(block).begin; id < table.block(block).end; ++id) {
      const View gradient = table.gradient(id);
      if (!gradient) continue;
      for (int64_t i = 0; i < gradient.size(); ++i) gradient.as<float>()[i] += value;
    }
  }
  /// Whether all gradients at home are this number.
  bool gradient_is(BlockId block, float value) const {
    for (TensorId id = table.block(block).begin; id < table.block(block).end; ++id) {
      const View gradient = table.gradient(id);
      if (!gradient) continue;
      for (int64_t i = 0; i < gradient.size(); ++i) {
        if (gradient.as<float>()[i] != value) return false;
      }
    }
    return true;
  }

  /// Whether a slot has the newest weights of the block.
  bool has_weights(const SlotLayout& layout, const std::byte* slot) const {
    for (const SlotTensor& tensor : layout.tensors) {
      for (size_t i = 0; i < tensor.bytes / sizeof(uint32_t); ++i) {
        uint32_t found = 0;
        std::memcpy(&found, slot + tensor.offset + i * sizeof(uint32_t), sizeof found);
        if (found != word(tensor.id, i)) return false;
      }
    }
    return true;
  }
  static bool is_all(const SlotLayout& layout, const std::byte* slot, float value) {
    for (const SlotTensor& tensor : layout.tensors) {
      const auto* numbers = reinterpret_cast<const float*>(slot + tensor.offset);
      for (size_t i = 0; i < tensor.bytes / sizeof(float); ++i) {
        if (numbers[i] != value) return false;
      }
    }
    return true;
  }
  static void add(const SlotLayout& layout, std::byte* slot, float value) {
    for (const SlotTensor& tensor : layout.tensors) {
      auto* numbers = reinterpret_cast<float*>(slot + tensor.offset);
      for (size_t i = 0; i < tensor.bytes / sizeof(float); ++i) numbers[i] += value;
    }
  }

  CopyPolicy policy;
  ParameterTable table;
  std::vector<BlockId> experts;
  std::vector<std::unique_ptr<Arena>> memory;

 private:
  uint32_t word(TensorId id, size_t i) const {
    const auto version = static_cast<uint32_t>(table.tensor(id).version);
    return (static_cast<uint32_t>(id) * 0x9e3779b9u) ^ (version * 0x85ebca6bu) ^
           static_cast<uint32_t>(i);
  }
};

}  // namespace hearth::test
