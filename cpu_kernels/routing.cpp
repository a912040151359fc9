#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/tiles.h"
#include "cpu_kernels/vector_math.h"

namespace hearth {
namespace {

HEARTH_CLONES void add_scaled(float scale, const float* from, float* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += scale * from[i];
}

// A counting sort; `offsets` holds first the counts, then the next free row of each expert, which
// in the end is the first row of the one after it.
void route(Stream& stream, ConstView choice, ConstView position, View offsets, View source,
           View row_of) {
  const int64_t k = choice.cols, experts = offsets.cols - 1;
  const auto place_of = [&](int32_t e) { return position ? position.as<int32_t>()[e] : e; };
  host_stream(stream).pool().run(1, [&](int64_t, int) {
    auto* next = offsets.as<int32_t>();
    std::fill_n(next, experts + 1, 0);
    for (int64_t t = 0; t < choice.rows; ++t) {
      for (int64_t j = 0; j < k; ++j) {
        const int32_t e = choice.row<int32_t>(t)[j];
        HEARTH_CHECK(e >= 0 && e < experts, "route: a choice is no expert");
        ++next[place_of(e) + 1];
      }
    }
    for (int64_t e = 0; e < experts; ++e) next[e + 1] += next[e];
    for (int64_t t = 0; t < choice.rows; ++t) {
      for (int64_t j = 0; j < k; ++j) {
        const int32_t row = next[place_of(choice.row<int32_t>(t)[j])]++;
        source.as<int32_t>()[row] = static_cast<int32_t>(t * k + j);
        row_of.row<int32_t>(t)[j] = row;
      }
    }
    std::copy_backward(next, next + experts, next + experts + 1);
    next[0] = 0;
  });
}

void permute(Stream& stream, ConstView x, ConstView source, ConstView part, View rows) {
  if (rows.rows == 0) return;
  const int64_t k = rows.rows / x.rows;
  const int64_t first = part ? part.as<int32_t>()[0] : 0;
  const int64_t last = part ? part.as<int32_t>()[part.cols - 1] : rows.rows;
  for_blocks(host_stream(stream), last - first, row_block(x.cols),
             [&](int64_t begin, int64_t end, int) {
               for (int64_t r = first + begin; r < first + end; ++r) {
                 const int64_t t = source.as<int32_t>()[r] / k;
                 std::copy_n(x.row<float>(t), x.cols, rows.row<float>(r));
               }
             });
}

void combine(Stream& stream, ConstView rows, const RoutingView& routing, ConstView weight,
             ConstView base, View out) {
  const int64_t k = routing.row_of.cols;
  const ConstView part = routing.offsets;
  const int64_t first = part ? part.as<int32_t>()[0] : 0;
  const int64_t last = part ? part.as<int32_t>()[part.cols - 1] : rows.rows;
  for_blocks(
      host_stream(stream), out.rows, row_block(out.cols * k), [&](int64_t begin, int64_t end, int) {
        for (int64_t t = begin; t < end; ++t) {
          float* to = out.row<float>(t);
          if (!base) {
            std::fill_n(to, out.cols, 0.0f);
          } else if (base.row<float>(t) != to) {
            std::copy_n(base.row<float>(t), out.cols, to);
          }
          for (int64_t j = 0; j < k; ++j) {
            const int64_t row = routing.row_of.row<int32_t>(t)[j];
            if (row < first || row >= last) continue;
            add_scaled(weight ? weight.row<float>(t)[j] : 1.0f, rows.row<float>(row), to, out.cols);
          }
        }
      });
}

void to_expert_order(Stream& stream, ConstView values, const RoutingView& routing, View rows) {
  const int64_t k = routing.row_of.cols;
  for_blocks(host_stream(stream), rows.cols, row_block(1), [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t source = routing.source.as<int32_t>()[r];
      rows.as<float>()[r] = values.row<float>(source / k)[source % k];
    }
  });
}

void to_token_order(Stream& stream, ConstView rows, const RoutingView& routing, View values) {
  const int64_t k = routing.row_of.cols;
  for_blocks(host_stream(stream), rows.cols, row_block(1), [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t source = routing.source.as<int32_t>()[r];
      values.row<float>(source / k)[source % k] = rows.as<float>()[r];
    }
  });
}

}  // namespace

void cpu::add_routing(OpTable& ops) {
  ops.route.add(CpuOps::kName, route);
  ops.permute.add(CpuOps::kName, permute);
  ops.combine.add(CpuOps::kName, combine);
  ops.to_expert_order.add(CpuOps::kName, to_expert_order);
  ops.to_token_order.add(CpuOps::kName, to_token_order);
}

}  // namespace hearth
