#include "peft/merged_weights.h"

#include "base/error.h"
#include "model/parameter_access.h"
#include "model/weight_copy.h"

namespace hearth {

void MergedWeights::read(TensorId id, int64_t row, int64_t rows, float* out) {
  const Tensor& tensor = adapters_.tensor(id);
  if (paired_ != id) {
    paired_ = id;
    pair_ = merge_pair(adapters_, id, staging_);
  }
  const int64_t begin = row * tensor.cols, n = rows * tensor.cols;
  if (pair_) {
    base_.read(id, row, rows, out);
    add_product(*pair_, row, rows, tensor.cols, out, pool_);
  } else if (tensor.trainable) {
    const ConstView home = tensor.home().view;
    HEARTH_CHECK(home && home.contiguous(), "merge: no memory of " + tensor.name);
    convert(home.dtype, host_elements(adapters_, tensor, home, begin, n, staging_), DType::f32, out,
            n);
  } else {
    base_.read(id, row, rows, out);
    return;
  }
  stored_.resize(static_cast<size_t>(n) * size_of(tensor.stored));
  convert(DType::f32, out, tensor.stored, stored_.data(), n);
  if (const int64_t bad = find_not_finite(tensor.stored, stored_.data(), n); bad < n) {
    throw numeric_error("tensor " + quoted(tensor.name) + ": element " +
                        std::to_string(begin + bad) + " is not finite with the adapter, as " +
                        safetensors_name(tensor.stored));
  }
  convert(tensor.stored, stored_.data(), DType::f32, out, n);
}

}  // namespace hearth
