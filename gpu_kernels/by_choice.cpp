#include "gpu_kernels/by_choice.h"

#include <algorithm>

#include "base/log.h"
#include "gpu_kernels/grouped_choices.h"
#include "gpu_kernels/product_choices.h"

namespace hearth::HEARTH_GPU {
namespace {

// Sides from which a library is asked. Pairs are mostly narrower.
constexpr int32_t kLeastForChoice = 64;

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

void say(const std::string& line) { log_info(line); }

}  // namespace

bool run_dense_by_choice(GpuStream& stream, const SegmentProduct& p) {
  if (!is_plain(p) || narrowest(p) < kLeastForChoice) return false;
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
  const ProductChoice* const choice = choose(product_choices(), stream, product, say);
  if (choice == nullptr) return false;
  choice->run(stream, product);
  return true;
}

bool run_grouped_by_choice(GpuStream& stream, const SegmentProduct& p, const int32_t* offsets,
                           const std::function<const ProductGroup*()>& table) {
  if (!is_plain(p) || narrowest(p) < kLeastForChoice) return false;
  GroupedProduct product;
  product.form = p.form;
  product.segment = p.segment;
  product.groups = p.groups;
  product.offsets = offsets;
  product.rows = p.args.rows;
  if (p.form == Form::wgrad) {
    product.a = p.args.a[0];
    product.b = p.args.a[1];
    product.accumulate = true;
  } else {
    product.a = p.args.a[p.segment];
    product.c = static_cast<float*>(p.args.c);
    product.c_stride = p.args.c_stride;
    product.accumulate = p.args.accumulate;
  }
  const GroupedChoice* const choice = choose(grouped_choices(), stream, product, say);
  if (choice == nullptr) return false;
  choice->run(stream, product, table());
  return true;
}

}  // namespace hearth::HEARTH_GPU
