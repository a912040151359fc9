#include "checkpoint/gguf_write.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/input_file.h"
#include "base/stop.h"
#include "checkpoint/new_file.h"
#include "model/weight_copy.h"

namespace hearth {
namespace {

constexpr const char* kWork = "the file was written";

class GgufData {
 public:
  GgufData(WeightSource& source, const ParameterTable& table, GgufWriter& writer)
      : source_(source), table_(table), writer_(writer) {}

  void write(const GgufPart& part) {
    for (const TensorId id : part.parts) write_rows(part, id);
  }

 private:
  void write_rows(const GgufPart& part, TensorId id) {
    const Tensor& tensor = table_.tensor(id);
    const int64_t unit = part.paired_heads > 0 ? tensor.rows / part.paired_heads : 1;
    const int64_t step = std::max<int64_t>(1, kPieceElements / (tensor.cols * unit)) * unit;
    for (int64_t row = 0; row < tensor.rows; row += step) {
      leave_if_stopped(kWork);
      const int64_t rows = std::min(step, tensor.rows - row), n = rows * tensor.cols;
      values_.resize(static_cast<size_t>(n));
      source_.read(id, row, rows, values_.data());
      if (part.paired_heads > 0) pair_rows(rows, unit, tensor.cols);
      stored_.resize(static_cast<size_t>(gguf_bytes(part.tensor.type, n)));
      if (to_gguf(part.tensor.type, values_.data(), n, stored_.data()) < n) {
        throw numeric_error("tensor " + quoted(tensor.name) + ": a weight is too large for " +
                            std::string(name_of(part.tensor.type)) + "; write it as bf16 or f32");
      }
      writer_.write(stored_.data(), stored_.size());
    }
  }

  /// Rows of whole heads, from halves to pairs.
  void pair_rows(int64_t rows, int64_t head, int64_t cols) {
    paired_.resize(values_.size());
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t in_head = row % head;
      const int64_t from = row - in_head + in_head % 2 * (head / 2) + in_head / 2;
      std::copy_n(values_.data() + from * cols, cols, paired_.data() + row * cols);
    }
    values_.swap(paired_);
  }

  WeightSource& source_;
  const ParameterTable& table_;
  GgufWriter& writer_;
  std::vector<float> values_, paired_;
  std::vector<std::byte> stored_;
};

Digest digest_of_gguf(const std::string& path) {
  const InputFile file(path);
  std::vector<std::byte> buffer(size_t{4} << 20);
  Hasher hasher;
  for (uint64_t at = 0; at < file.size(); at += buffer.size()) {
    leave_if_stopped(kWork);
    const auto bytes = static_cast<size_t>(std::min<uint64_t>(buffer.size(), file.size() - at));
    file.read(buffer.data(), bytes, at);
    hasher.update(buffer.data(), bytes);
  }
  return hasher.digest();
}

}  // namespace

void write_gguf(WeightSource& source, const ParameterTable& table, const ModelSpec& spec,
                GgufType type, const GgufMetadata& metadata, const std::string& path) {
  const std::vector<GgufPart> parts = gguf_parts(table, spec, type);
  std::vector<GgufTensor> tensors;
  for (const GgufPart& part : parts) tensors.push_back(part.tensor);
  NewFile file(path);
  GgufWriter writer(file.path(), metadata, tensors);
  GgufData data(source, table, writer);
  for (const GgufPart& part : parts) data.write(part);
  const Digest written = writer.close();
  if (digest_of_gguf(file.path()) != written) {
    throw storage_error(file.path() +
                        ": reads back differently from what was written; the disk or its cable may "
                        "be failing");
  }
  file.publish();
}

}  // namespace hearth
