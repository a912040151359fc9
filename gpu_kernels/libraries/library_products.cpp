#include "gpu_kernels/libraries/library_products.h"

#include <algorithm>

#include "gpu_kernels/libraries/grouped_libraries.h"
#include "gpu_kernels/libraries/product_libraries.h"

namespace hearth::HEARTH_GPU {
namespace {

// The shortest side for which a library is asked. Low-rank pairs are mostly narrower.
constexpr int32_t kLeastForLibrary = 64;

// Whether libraries know such products: no scale, no dropout, sums stored as f32.
bool is_plain(const SegmentProduct& p) {
  return p.args.dropouts == nullptr && p.args.dropout.limit == 0 && !p.args.c_bf16 &&
         std::all_of(p.groups.begin(), p.groups.end(),
                     [](const ProductGroup& group) { return group.scale == 1; });
}

// The narrowest side that the host knows, of the largest group.
int32_t narrowest(const SegmentProduct& p) {
  int32_t columns = 0, inner = 0;
  for (const ProductGroup& group : p.groups) {
    columns = std::max(columns, group.columns);
    inner = std::max(inner, p.form == Form::wgrad ? group.rows : group.depth[p.segment]);
  }
  return std::min(columns, inner);
}

}  // namespace

bool run_dense_by_library(GpuStream& stream, const SegmentProduct& p) {
  if (!is_plain(p) || narrowest(p) < kLeastForLibrary) return false;
  const ProductGroup& group = p.groups[0];
  DenseProduct product;
  product.form = p.form;
  product.columns = group.columns;
  if (p.form == Form::wgrad) {
    product.a = p.args.a[0];
    product.b = p.args.a[1];
    product.rows = group.rows;
    product.depth = p.args.rows;
    product.c = group.c;
    product.c_stride = group.c_stride;
    product.accumulate = true;
  } else {
    product.a = p.args.a[p.segment];
    product.b = {group.weight[p.segment], group.weight_stride[p.segment], group.stored[p.segment]};
    product.rows = p.args.rows;
    product.depth = group.depth[p.segment];
    product.c = static_cast<float*>(p.args.c);
    product.c_stride = p.args.c_stride;
    product.accumulate = p.args.accumulate;
  }
  return run_by_library(product_libraries(), stream, product);
}

bool run_grouped_by_library(GpuStream& stream, const SegmentProduct& p, const int32_t* offsets,
                            const std::function<const ProductGroup*()>& table) {
  if (!is_plain(p) || narrowest(p) < kLeastForLibrary) return false;
  GroupedProduct product;
  product.form = p.form;
  product.segment = p.segment;
  product.groups = p.groups;
  product.offsets = offsets;
  product.table = table;
  product.rows = p.args.rows;
  if (p.form == Form::wgrad) {
    product.a = p.args.a[0];
    product.b = p.args.a[1];
    product.offset_step = p.args.offset_step;
    product.accumulate = true;
  } else {
    product.a = p.args.a[p.segment];
    product.c = static_cast<float*>(p.args.c);
    product.c_stride = p.args.c_stride;
    product.accumulate = p.args.accumulate;
  }
  return run_by_library(grouped_libraries(), stream, product);
}

}  // namespace hearth::HEARTH_GPU
