// The range of a divided expert that its device computes, as it lies in the values `divided_weights` and
// `divided_gradient`: the cut tensors of the expert and of its adapter (ops/width_range.h), one behind
// the other, each contiguous.
#pragma once

#include <cstddef>
#include <optional>

#include "base/arena.h"
#include "layers/settings.h"
#include "model/parameter_memory.h"
#include "model/parameter_table.h"

namespace hearth {

enum class DividedPart : uint8_t { weights, gradient };

/// The range of a tensor of an expert or its adapter: rows, columns, or all of it.
enum class WidthCut : uint8_t { rows, columns, none };
inline WidthCut width_cut(const Tensor& tensor) {
  const bool down = tensor.slot == Slot::down;
  switch (tensor.factor) {
    case Factor::none: return down ? WidthCut::columns : WidthCut::rows;
    case Factor::a: return down ? WidthCut::columns : WidthCut::none;
    case Factor::b: return down ? WidthCut::none : WidthCut::rows;
  }
  return WidthCut::none;
}

inline CopyPolicy policy_of(const RunSettings& settings, bool training) {
  return {training, settings.compute, settings.activations == DType::f64 ? DType::f64 : DType::f32};
}

/// The type in which products read a tensor, or that of its gradient; nullopt: it has none.
inline std::optional<DType> divided_type(const ParameterTable& table, TensorId id, DividedPart part,
                                         const CopyPolicy& policy) {
  if (part == DividedPart::gradient) return copy_type(table, id, CopyRole::gradient, policy);
  for (const CopyRole role : {CopyRole::working, CopyRole::master, CopyRole::stored}) {
    if (const auto type = copy_type(table, id, role, policy)) return type;
  }
  return std::nullopt;
}

/// f(id, type, rows, columns, offset) of each tensor that the part has, in table order. Returns the
/// bytes of all. `width`: columns of the range.
template <class F>
size_t each_divided(const ParameterTable& table, BlockId expert, int64_t width, DividedPart part,
                    const CopyPolicy& policy, const F& f) {
  size_t bytes = 0;
  const auto add_block = [&](const Block& block) {
    for (TensorId id = block.begin; id < block.end; ++id) {
      const std::optional<DType> type = divided_type(table, id, part, policy);
      if (!type) continue;
      const Tensor& tensor = table.tensor(id);
      const WidthCut cut = width_cut(tensor);
      const int64_t rows = cut == WidthCut::rows ? width : tensor.rows;
      const int64_t cols = cut == WidthCut::columns ? width : tensor.cols;
      f(id, *type, rows, cols, bytes);
      bytes = align_up(bytes + static_cast<size_t>(rows * cols) * size_of(*type));
    }
  };
  add_block(table.block(expert));
  if (const auto adapter = table.adapter_of(expert)) add_block(table.block(*adapter));
  return bytes;
}

/// Of a layer's experts, which are alike.
inline size_t divided_bytes(const ParameterTable& table, int32_t layer, int64_t width,
                            DividedPart part, const CopyPolicy& policy) {
  return each_divided(table, table.find_block(BlockKind::expert, layer, 0), width, part, policy,
                      [](TensorId, DType, int64_t, int64_t, size_t) {});
}

/// Of the value that such bytes are in, whatever the width (Value::divided_weights, divided_gradient).
inline DividedPart divided_part_of(Value value) {
  return value == Value::divided_gradient ? DividedPart::gradient : DividedPart::weights;
}

}  // namespace hearth
