#include "train/trained_tensors.h"

#include <algorithm>
#include <vector>

#include "base/error_format.h"
#include "base/file_ops.h"
#include "base/setting.h"

namespace hearth {

constexpr int64_t kPiece = int64_t{1} << 20;  // elements read at a time

TensorId trained_tensor(const SafetensorsFile& file, const SafetensorsEntry& entry,
                        const ParameterTable& table) {
  const auto id = table.find(entry.name);
  const uint64_t bytes = entry.end - entry.begin;
  if (!id || entry.dtype != "F32" ||
      bytes != static_cast<uint64_t>(table.tensor(*id).size()) * sizeof(float)) {
    throw input_error("{}: tensor {} does not fit the model; give the model that was trained ({})",
                      file.path(), quoted(entry.name), spelled(Setting::model));
  }
  return *id;
}

static void read_trained_file(const SafetensorsFile& file, ParameterTable& table) {
  std::vector<float> piece(static_cast<size_t>(kPiece));
  for (const SafetensorsEntry& entry : file.header().entries) {
    const Tensor& tensor = table.tensor(trained_tensor(file, entry, table));
    const View home = tensor.home().view;
    for (int64_t at = 0; at < tensor.size(); at += kPiece) {
      const int64_t n = std::min(kPiece, tensor.size() - at);
      const auto offset = static_cast<size_t>(at);
      file.read(entry, piece.data(), static_cast<size_t>(n) * sizeof(float),
                offset * sizeof(float));
      auto* target = static_cast<std::byte*>(home.raw()) + offset * size_of(home.dtype);
      convert(DType::f32, piece.data(), home.dtype, target, n);
    }
  }
}

void read_trained(std::span<const SafetensorsFile> files, ParameterTable& table) {
  for (const SafetensorsFile& file : files) read_trained_file(file, table);
}

void require_new(const std::string& out) {
  const FileInfo info = file_info(out);
  if (info.is_link || info.kind != FileKind::none) {
    throw usage_error("{}: exists already, nothing was written; choose another name",
                      spelled(Setting::out, quoted(out)));
  }
}

}  // namespace hearth
