#include "checkpoint/weight_source.h"

#include "base/error.h"
#include "model/weight_copy.h"

namespace hearth {

CheckpointWeights::CheckpointWeights(const Checkpoint& base)
    : base_(base), table_(base.make_table()), homes_(table_.tensors().size()) {
  for (const PublishedTensor& published : base.layout().tensors()) {
    int64_t at = 0;
    for (const TensorId id : published.parts) {
      homes_[static_cast<size_t>(id)] = {&published, at};
      at += table_.tensor(id).size();
    }
  }
}

void CheckpointWeights::read(TensorId id, int64_t row, int64_t rows, float* out) {
  const Tensor& tensor = table_.tensor(id);
  const Home& home = homes_[static_cast<size_t>(id)];
  const TensorLocation& location = base_.location(home.published->name);
  const SafetensorsFile& file = *base_.files()[static_cast<size_t>(location.file)];
  const int64_t begin = home.at + row * tensor.cols, n = rows * tensor.cols;
  stored_.resize(static_cast<size_t>(n) * size_of(tensor.stored));
  file.read(location.entry, stored_.data(), stored_.size(),
            static_cast<uint64_t>(begin) * size_of(tensor.stored));
  const int64_t bad = find_not_finite(tensor.stored, stored_.data(), n);
  if (bad < n) {
    throw input_error(file.path() + ": tensor " + quoted(home.published->name) + ": element " +
                      std::to_string(begin + bad) + " is not finite (NaN or infinity)");
  }
  convert(tensor.stored, stored_.data(), DType::f32, out, n);
}

}  // namespace hearth
