#include "checkpoint/checkpoint_write.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/stop.h"
#include "checkpoint/new_directory.h"
#include "checkpoint/safetensors_writer.h"
#include "model/parameter_access.h"
#include "model/weight_copy.h"

namespace hearth {
namespace {

std::string name_of_path(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// Copies tensors, rounded to their stored types, into the files of a new checkpoint.
class WeightWriter {
 public:
  WeightWriter(const ParameterTable& table, const Checkpoint& base)
      : table_(table), base_(base), buffer_(kPieceElements) {}

  /// Writes one weight file and reads it back.
  void write(const SafetensorsFile& source, const std::string& path) {
    SafetensorsWriter writer(path, source.header().entries, source.header().metadata);
    for (const SafetensorsEntry& entry : source.header().entries) {
      const std::string tied = base_.family().tied_source(base_.spec(), entry.name);
      const PublishedTensor* tensor = base_.layout().find(tied.empty() ? entry.name : tied);
      if (tensor != nullptr) {
        write_tensor(*tensor, entry, writer, path);
      } else {
        copy_tensor(source, entry, writer);
      }
    }
    const Digest written = writer.close();
    if (digest_of_file(path) != written) {
      throw storage_error(path +
                          ": reads back differently from what was written; "
                          "the disk or its cable may be failing");
    }
  }

 private:
  void write_tensor(const PublishedTensor& published, const SafetensorsEntry& entry,
                    SafetensorsWriter& writer, const std::string& path) {
    int64_t at = 0;
    for (const TensorId id : published.parts) {
      write_part(table_.tensor(id), at, entry, writer, path);
      at += table_.tensor(id).size();
    }
  }

  /// The elements from `at` on of a published tensor.
  void write_part(const Tensor& tensor, int64_t at, const SafetensorsEntry& entry,
                  SafetensorsWriter& writer, const std::string& path) {
    const DType type = *safetensors_dtype(entry.dtype);
    const Copy& home = tensor.home();
    HEARTH_CHECK(home.present() && home.view.contiguous(),
                 "write_checkpoint: no weights of tensor " + tensor.name);
    for (int64_t begin = 0; begin < tensor.size(); begin += kPieceElements) {
      leave_if_stopped("the result was written");
      const int64_t n = std::min(kPieceElements, tensor.size() - begin);
      convert(home.view.dtype, host_elements(table_, tensor, home.view, begin, n, staging_), type,
              buffer_.data(), n);
      const int64_t bad = find_not_finite(type, buffer_.data(), n);
      if (bad < n) {
        throw numeric_error(path + ": tensor " + quoted(entry.name) + ": element " +
                            std::to_string(at + begin + bad) + " is not finite as " + entry.dtype +
                            ", the checkpoint's type");
      }
      writer.write(buffer_.data(), static_cast<size_t>(n) * size_of(type));
    }
  }

  void copy_tensor(const SafetensorsFile& source, const SafetensorsEntry& entry,
                   SafetensorsWriter& writer) {
    const uint64_t size = entry.end - entry.begin;
    const uint64_t room = buffer_.size() * sizeof(float);
    for (uint64_t at = 0; at < size; at += room) {
      leave_if_stopped("the result was written");
      const auto bytes = static_cast<size_t>(std::min(room, size - at));
      source.read(entry, buffer_.data(), bytes, at);
      writer.write(buffer_.data(), bytes);
    }
  }

  Digest digest_of_file(const std::string& path) {
    const InputFile file(path);
    const uint64_t room = buffer_.size() * sizeof(float);
    Hasher hasher;
    for (uint64_t at = 0; at < file.size(); at += room) {
      leave_if_stopped("the result was written");
      const auto bytes = static_cast<size_t>(std::min(room, file.size() - at));
      file.read(buffer_.data(), bytes, at);
      hasher.update(buffer_.data(), bytes);
    }
    return hasher.digest();
  }

  const ParameterTable& table_;
  const Checkpoint& base_;
  std::vector<float> buffer_;
  std::vector<std::byte> staging_;  // of weights that the host does not reach
};

}  // namespace

void write_checkpoint(const ParameterTable& table, const Checkpoint& base,
                      const std::string& directory, const FileChanges& changes) {
  NewDirectory result(directory);
  WeightWriter writer(table, base);
  for (const auto& file : base.files()) {
    writer.write(*file, result.path() + "/" + name_of_path(file->path()));
  }
  std::vector<std::string> copied = {"config.json"};
  if (!base.index_text().empty()) copied.push_back("model.safetensors.index.json");
  for (const std::string& name : copied) {
    result.copy(base.directory() + "/" + name, name);
  }
  write_companions(base, changes, result);
  const Checkpoint check(result.path());
  HEARTH_CHECK(check.files().size() == base.files().size(), "write_checkpoint: other shard plan");
  result.publish();
}

}  // namespace hearth
