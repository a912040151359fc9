#include "reference/reference_op_set.h"
#include "reference/values.h"

namespace hearth {
namespace {

void route(Stream&, ConstView choice, ConstView position, View offsets, View source, View row_of) {
  const int64_t k = choice.cols, experts = offsets.cols - 1;
  int32_t row = 0;
  for (int64_t e = 0; e < experts; ++e) {
    offsets.as<int32_t>()[e] = row;
    for (int64_t t = 0; t < choice.rows; ++t) {
      for (int64_t j = 0; j < k; ++j) {
        const int32_t chosen = choice.row<int32_t>(t)[j];
        if ((position ? position.as<int32_t>()[chosen] : chosen) != e) continue;
        source.as<int32_t>()[row] = static_cast<int32_t>(t * k + j);
        row_of.row<int32_t>(t)[j] = row++;
      }
    }
  }
  offsets.as<int32_t>()[experts] = row;
  HEARTH_CHECK(row == choice.size(), "route: a choice is no expert");
}

void permute(Stream&, ConstView x, ConstView source, ConstView part, View rows) {
  if (rows.rows == 0) return;
  const int64_t k = rows.rows / x.rows;
  const int64_t first = part ? part.as<int32_t>()[0] : 0;
  const int64_t last = part ? part.as<int32_t>()[part.cols - 1] : rows.rows;
  for_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t r = first; r < last; ++r) {
      const int64_t t = source.as<int32_t>()[r] / k;
      for (int64_t i = 0; i < x.cols; ++i) rows.row<T>(r)[i] = x.row<T>(t)[i];
    }
  });
}

void combine(Stream&, ConstView rows, const RoutingView& routing, ConstView weight, ConstView base,
             View out) {
  const int64_t k = routing.row_of.cols;
  const ConstView part = routing.offsets;
  const int64_t first = part ? part.as<int32_t>()[0] : 0;
  const int64_t last = part ? part.as<int32_t>()[part.cols - 1] : rows.rows;
  for_type(rows.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t t = 0; t < out.rows; ++t) {
      for (int64_t i = 0; i < out.cols; ++i) {
        double sum = base ? base.row<T>(t)[i] : 0.0;
        for (int64_t j = 0; j < k; ++j) {
          const int64_t row = routing.row_of.row<int32_t>(t)[j];
          if (row < first || row >= last) continue;
          const double w = weight ? weight.row<T>(t)[j] : 1.0;
          sum += w * rows.row<T>(row)[i];
        }
        out.row<T>(t)[i] = static_cast<T>(sum);
      }
    }
  });
}

void to_expert_order(Stream&, ConstView values, const RoutingView& routing, View rows) {
  const int64_t k = routing.row_of.cols;
  for_type(values.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t r = 0; r < rows.cols; ++r) {
      const int64_t source = routing.source.as<int32_t>()[r];
      rows.as<T>()[r] = values.row<T>(source / k)[source % k];
    }
  });
}

void to_token_order(Stream&, ConstView rows, const RoutingView& routing, View values) {
  const int64_t k = routing.row_of.cols;
  for_type(values.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t r = 0; r < rows.cols; ++r) {
      const int64_t source = routing.source.as<int32_t>()[r];
      values.row<T>(source / k)[source % k] = rows.as<T>()[r];
    }
  });
}

}  // namespace

void reference::add_routing(OpTable& ops) {
  ops.route.add(ReferenceOps::kName, route);
  ops.permute.add(ReferenceOps::kName, permute);
  ops.combine.add(ReferenceOps::kName, combine);
  ops.to_expert_order.add(ReferenceOps::kName, to_expert_order);
  ops.to_token_order.add(ReferenceOps::kName, to_token_order);
}

}  // namespace hearth
