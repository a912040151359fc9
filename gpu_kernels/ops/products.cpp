#include "gpu_kernels/ops/products.h"

#include <algorithm>

#include "base/arena.h"
#include "gpu_kernels/libraries/library_products.h"

namespace hearth::HEARTH_GPU {
namespace {

// Whether a weight may be copied to shared memory as it is, 16 bytes at a time.
bool may_be_copied(const ProductGroup& group, int segment) {
  if (group.depth[segment] == 0) return true;
  return group.stored[segment] == Stored::bf16 && group.weight_stride[segment] % 8 == 0 &&
         reinterpret_cast<uintptr_t>(group.weight[segment]) % 16 == 0;
}

void set_segment(ProductGroup& group, int segment, const ConstView& weight, int64_t depth) {
  group.weight[segment] = weight.data;
  group.weight_stride[segment] = weight.stride;
  group.stored[segment] = stored_of(weight.dtype);
  group.depth[segment] = static_cast<int32_t>(depth);
}

int64_t largest_rank(Maps maps) {
  int64_t rank = 0;
  for (const LinearView* map : maps) rank = std::max(rank, map->low_rank.rank());
  return rank;
}

}  // namespace

Stored stored_of(DType type) {
  switch (type) {
    case DType::f32: return Stored::f32;
    case DType::bf16: return Stored::bf16;
    case DType::f16: return Stored::f16;
    default: HEARTH_CHECK(false, "gpu: operands are f32, bf16 or f16");
  }
}

Operand operand_of(const ConstView& view) {
  return {view.data, view.stride, stored_of(view.dtype)};
}

DropoutRule rule_of(const Dropout& dropout) {
  DropoutRule rule;
  if (!dropout) return rule;
  rule.key = dropout.key;
  rule.limit = static_cast<uint64_t>(dropout.rate * 0x1p32);
  rule.ids = dropout.ids ? static_cast<const int32_t*>(dropout.ids.data) : nullptr;
  rule.first_row = dropout.first_row;
  rule.first_quad = dropout.first_column / 4;
  rule.scale = static_cast<float>(1 / (1 - dropout.rate));
  return rule;
}

bool has_pair(Maps maps) { return largest_rank(maps) > 0; }

bool has_dropout(Maps maps) {
  return std::any_of(maps.begin(), maps.end(),
                     [](const LinearView* map) { return map->low_rank && map->low_rank.dropout; });
}

Operand Products::take(int64_t columns) {
  const int64_t stride = bf16_ ? operand_columns(columns) : columns;
  Scratch& scratch = stream_.scratch();
  void* const data = bf16_ ? static_cast<void*>(scratch.take<hearth::bf16>(rows_.rows * stride))
                           : static_cast<void*>(scratch.take<float>(rows_.rows * stride));
  return {data, stride, stored()};
}

Operand Products::operand(const Activations& x, const Operand& reuse) {
  HEARTH_CHECK(x.view.dtype == DType::f32, "gpu: activations are f32");
  if (!bf16_ && x.source == nullptr) return operand_of(x.view);
  const Operand to = !bf16_ && reuse.data != nullptr ? reuse : take(x.view.cols);
  prepare(x, nullptr, to);
  return to;
}

const DropoutRule* Products::dropouts(Maps maps) {
  if (!has_dropout(maps)) return nullptr;
  std::vector<DropoutRule> rules;
  for (const LinearView* map : maps) {
    rules.push_back(map->low_rank ? rule_of(map->low_rank.dropout) : DropoutRule());
  }
  return static_cast<const DropoutRule*>(stream_.upload(std::as_bytes(std::span(rules))));
}

Operand Products::dropped(const Activations& x, Maps maps, const Operand& plain) {
  if (!has_dropout(maps)) return plain;
  const Operand to = take(x.view.cols);
  prepare(x, dropouts(maps), to);
  return to;
}

void Products::prepare(const Activations& x, const DropoutRule* dropouts, const Operand& to) {
  PrepareArgs args;
  args.from = x.view.as<float>();
  args.from_stride = x.view.stride;
  args.source = x.source;
  args.choices = static_cast<int32_t>(x.choices);
  args.to = const_cast<void*>(to.data);
  args.to_stride = to.stride;
  args.stored = to.stored;
  args.rows = rows_.rows;
  args.columns = x.view.cols;
  args.groups = row_groups();
  args.dropouts = dropouts;
  prepare_rows_on(stream_.handle(), args);
}

void Products::run(Form form, ProductArgs args, const Fill& fill) {
  // In wgrad a segment of each gradient's groups at a time.
  const int32_t count = form == Form::wgrad ? rows_.groups / rows_.segments : rows_.groups;
  std::vector<ProductGroup> groups(static_cast<size_t>(count));
  int64_t columns = 0, rows = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    fill(g, groups[g]);
    columns = std::max<int64_t>(columns, groups[g].columns);
    rows = std::max<int64_t>(rows, groups[g].rows);
  }
  if (columns == 0 || (form == Form::wgrad && rows == 0)) return;
  args.rows = rows_.rows;
  args.group_count = count;
  if (run_by_library(form, args, groups)) return;
  const bool copied = std::all_of(groups.begin(), groups.end(), [](const ProductGroup& group) {
    return group.columns == 0 || (may_be_copied(group, 0) && may_be_copied(group, 1));
  });
  if (rows_.offsets != nullptr) {
    args.groups = stream_.upload(groups);
  } else {
    args.one = groups[0];
  }
  if (form != Form::wgrad) {
    args.tiles = rows_.tiles;
    args.row_tiles = rows_.tile_count;
  }
  if (bf16_) {
    product_bf16_on(stream_.handle(), form, args, rows, columns, copied);
  } else {
    product_f32_on(stream_.handle(), form, args, rows, columns);
  }
}

// Whether libraries have taken all of it. What they have not is left in `args` and `groups`: the
// second segment, mostly, as pairs are narrow.
bool Products::run_by_library(Form form, ProductArgs& args, std::vector<ProductGroup>& groups) {
  const ProductGroup* table = nullptr;
  const auto on_device = [&] {
    if (table == nullptr) table = stream_.upload(groups);
    return table;
  };
  const auto takes = [&](int segment) {
    const SegmentProduct product{form, args, groups, segment};
    return rows_.offsets != nullptr
               ? run_grouped_by_library(stream_, product,
                                        form == Form::wgrad ? args.offsets : rows_.offsets,
                                        on_device)
               : run_dense_by_library(stream_, product);
  };
  if (!takes(0)) return false;
  if (form == Form::wgrad) return true;
  args.accumulate = true;
  const auto has_second = [](const ProductGroup& group) {
    return group.columns > 0 && group.depth[1] > 0;
  };
  if (std::none_of(groups.begin(), groups.end(), has_second) || takes(1)) return true;
  for (ProductGroup& group : groups) {
    group.depth[0] = 0;
    if (group.depth[1] == 0) group.columns = 0;  // nothing is left of it
  }
  return false;
}

Operand Products::low_rank_input(const Operand& kept, Maps maps) {
  return low_rank(Form::forward, kept, maps);
}

Operand Products::low_rank_output(const Operand& dy, Maps maps) {
  return low_rank(Form::dgrad, dy, maps);
}

Operand Products::low_rank(Form form, const Operand& from, Maps maps) {
  if (!has_pair(maps)) return {};
  const Operand to = take(largest_rank(maps));
  ProductArgs args;
  args.a[0] = from;
  args.c = const_cast<void*>(to.data);
  args.c_stride = to.stride;
  args.c_bf16 = bf16_;
  run(form, args, [&](size_t g, ProductGroup& group) {
    const LowRank& pair = maps[g]->low_rank;
    if (!pair) return;
    if (form == Form::forward) {
      set_segment(group, 0, pair.a, pair.a.cols);
    } else {
      set_segment(group, 0, pair.b, pair.b.rows);
    }
    group.columns = static_cast<int32_t>(pair.rank());
    group.scale = static_cast<float>(pair.scale);
  });
  return to;
}

void Products::forward(const Operand& x, const Operand& u, Maps maps, const View& y,
                       bool accumulate) {
  product(Form::forward, x, u, maps, y, accumulate);
}

void Products::dgrad(const Operand& dy, const Operand& v, Maps maps, const View& dx,
                     bool accumulate) {
  product(Form::dgrad, dy, v, maps, dx, accumulate);
}

void Products::product(Form form, const Operand& from, const Operand& low_rank, Maps maps,
                       const View& to, bool accumulate) {
  const bool forward = form == Form::forward;
  ProductArgs args;
  args.a[0] = from;
  args.a[1] = low_rank;
  args.c = to.as<float>();
  args.c_stride = to.stride;
  args.accumulate = accumulate;
  run(form, args, [&](size_t g, ProductGroup& group) {
    const LinearView& w = *maps[g];
    const LowRank& pair = w.low_rank;
    set_segment(group, 0, w.weight, forward ? w.in() : w.out());
    if (low_rank.data != nullptr && pair) {
      set_segment(group, 1, forward ? pair.b : pair.a, pair.rank());
    }
    group.columns = static_cast<int32_t>(forward ? w.out() : w.in());
  });
}

void Products::dgrad_of_two(const Operand& dy, Maps maps, const Operand& dy2, Maps maps2,
                            const View& dx) {
  ProductArgs args;
  args.a[0] = dy;
  args.a[1] = dy2;
  args.c = dx.as<float>();
  args.c_stride = dx.stride;
  run(Form::dgrad, args, [&](size_t g, ProductGroup& group) {
    set_segment(group, 0, maps[g]->weight, maps[g]->out());
    set_segment(group, 1, maps2[g]->weight, maps2[g]->out());
    group.columns = static_cast<int32_t>(maps[g]->in());
  });
}

void Products::add_low_rank_gradient(const Operand& v, Maps maps, const View& dx) {
  if (v.data == nullptr) return;
  ProductArgs args;
  args.a[0] = v;
  args.c = dx.as<float>();
  args.c_stride = dx.stride;
  args.accumulate = true;
  args.dropouts = dropouts(maps);
  run(Form::dgrad, args, [&](size_t g, ProductGroup& group) {
    const LowRank& pair = maps[g]->low_rank;
    if (!pair) return;
    set_segment(group, 0, pair.a, pair.rank());
    group.columns = static_cast<int32_t>(pair.a.cols);
  });
}

void Products::wgrad(const Operand& dy, const Operand& x,
                     const std::function<View(int)>& gradient) {
  ProductArgs args;
  args.a[0] = dy;
  args.a[1] = x;
  args.offset_step = rows_.segments;
  for (int32_t segment = 0; segment < rows_.segments; ++segment) {
    args.offsets = rows_.offsets == nullptr ? nullptr : rows_.offsets + segment;
    run(Form::wgrad, args, [&](size_t g, ProductGroup& group) {
      const View to = gradient(static_cast<int>(g));
      if (!to) return;
      group.rows = static_cast<int32_t>(to.rows);
      group.columns = static_cast<int32_t>(to.cols);
      group.c = to.as<float>();
      group.c_stride = to.stride;
    });
  }
}

}  // namespace hearth::HEARTH_GPU
