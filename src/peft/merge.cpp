#include "peft/merge.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/stop.h"
#include "checkpoint/new_directory.h"
#include "checkpoint/safetensors_writer.h"
#include "model/parameter_access.h"
#include "model/weight_copy.h"
#include "peft/merge_pair.h"

namespace hearth {
namespace {

/// Makes the content of the result, piece by piece, as often as asked.
class MergedTensors {
 public:
  MergedTensors(const ParameterTable& table, const Checkpoint& base, const Pool& pool)
      : table_(table), base_(base), pool_(pool) {}

  /// Calls f(bytes, count) for the tensor of a file of the base, from its start to its end.
  template <class F>
  void each_piece(const SafetensorsFile& source, const SafetensorsEntry& entry,
                  const std::string& path, F&& f) {
    const std::string tied = base_.family().tied_source(base_.spec(), entry.name);
    const PublishedTensor* tensor = base_.layout().find(tied.empty() ? entry.name : tied);
    if (tensor == nullptr) {
      copy(source, entry, 0, entry.end - entry.begin, f);
      return;
    }
    const uint64_t size = size_of(*safetensors_dtype(entry.dtype));
    uint64_t at = 0;
    for (const TensorId id : tensor->parts) {
      const uint64_t bytes = static_cast<uint64_t>(table_.tensor(id).size()) * size;
      if (const std::optional<MergePair> pair = merge_pair(table_, id, staging_)) {
        merge(source, entry, at, table_.tensor(id), *pair, path, f);
      } else if (table_.tensor(id).trainable) {
        round(table_.tensor(id), entry, path, f);
      } else {
        copy(source, entry, at, bytes, f);
      }
      at += bytes;
    }
  }

 private:
  template <class F>
  void copy(const SafetensorsFile& source, const SafetensorsEntry& entry, uint64_t begin,
            uint64_t bytes, F&& f) {
    stored_.resize(kPieceElements);
    const uint64_t room = stored_.size() * sizeof(float);
    for (uint64_t at = 0; at < bytes; at += room) {
      leave_if_stopped("the result was written");
      const auto n = static_cast<size_t>(std::min(room, bytes - at));
      source.read(entry, stored_.data(), n, begin + at);
      f(stored_.data(), n);
    }
  }

  /// A tensor that was trained as a whole.
  template <class F>
  void round(const Tensor& tensor, const SafetensorsEntry& entry, const std::string& path, F&& f) {
    const DType type = *safetensors_dtype(entry.dtype);
    const ConstView home = tensor.home().view;
    HEARTH_CHECK(home && home.contiguous(), "merge: no memory of " + tensor.name);
    stored_.resize(kPieceElements);
    for (int64_t begin = 0; begin < home.size(); begin += kPieceElements) {
      leave_if_stopped("the result was written");
      const int64_t n = std::min(kPieceElements, home.size() - begin);
      convert(home.dtype, host_elements(table_, tensor, home, begin, n, staging_), type,
              stored_.data(), n);
      require_finite(tensor, entry, begin, n, path);
      f(stored_.data(), static_cast<size_t>(n) * size_of(type));
    }
  }

  void require_finite(const Tensor& tensor, const SafetensorsEntry& entry, int64_t begin, int64_t n,
                      const std::string& path) const {
    const int64_t bad = find_not_finite(*safetensors_dtype(entry.dtype), stored_.data(), n);
    if (bad == n) return;
    throw numeric_error(path + ": tensor " + quoted(tensor.name) + ": element " +
                        std::to_string(begin + bad) + " is not finite with the adapter, as " +
                        entry.dtype);
  }

  /// Whole rows of W at a time: `begin` is where it starts in its stored tensor, in bytes.
  template <class F>
  void merge(const SafetensorsFile& source, const SafetensorsEntry& entry, uint64_t begin,
             const Tensor& tensor, const MergePair& pair, const std::string& path, F&& f) {
    const DType type = *safetensors_dtype(entry.dtype);
    const int64_t each = std::max<int64_t>(1, kPieceElements / tensor.cols);
    for (int64_t row = 0; row < tensor.rows; row += each) {
      leave_if_stopped("the result was written");
      const int64_t rows = std::min(each, tensor.rows - row), n = rows * tensor.cols;
      stored_.resize(static_cast<size_t>(n));
      values_.resize(static_cast<size_t>(n));
      const size_t bytes = static_cast<size_t>(n) * size_of(type);
      source.read(entry, stored_.data(), bytes,
                  begin + static_cast<uint64_t>(row * tensor.cols) * size_of(type));
      convert(type, stored_.data(), DType::f32, values_.data(), n);
      add_product(pair, row, rows, tensor.cols, values_.data(), pool_);
      convert(DType::f32, values_.data(), type, stored_.data(), n);
      require_finite(tensor, entry, row * tensor.cols, n, path);
      f(stored_.data(), bytes);
    }
  }

  const ParameterTable& table_;
  const Checkpoint& base_;
  const Pool& pool_;
  std::vector<float> stored_, values_;
  std::vector<std::byte> staging_;  // of homes that the host does not reach
};

void write_file(MergedTensors& merged, const SafetensorsFile& source, const std::string& path) {
  SafetensorsWriter writer(path, source.header().entries, source.header().metadata);
  for (const SafetensorsEntry& entry : source.header().entries) {
    merged.each_piece(source, entry, path,
                      [&](const void* bytes, size_t n) { writer.write(bytes, n); });
  }
  writer.close();
}

Error damaged(const std::string& path, const std::string& what) {
  return storage_error(path + ": " + what + " reads back differently from what was written; " +
                       "the disk or its cable may be failing");
}

SafetensorsFile open_written(const SafetensorsFile& source, const std::string& path) {
  try {
    SafetensorsFile written(path);
    const auto same = [](const SafetensorsEntry& x, const SafetensorsEntry& y) {
      return x.name == y.name && x.dtype == y.dtype && x.shape == y.shape;
    };
    const auto &ours = written.header().entries, &theirs = source.header().entries;
    if (std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(), same)) return written;
  } catch (const Error& error) {
    if (error.code() != ExitCode::input) throw;
  }
  throw damaged(path, "the header");
}

/// Compares the written file, tensor by tensor, with what it should hold.
void verify_file(MergedTensors& merged, const SafetensorsFile& source, const std::string& path) {
  const SafetensorsFile written = open_written(source, path);
  std::vector<std::byte> back;
  for (size_t i = 0; i < written.header().entries.size(); ++i) {
    const SafetensorsEntry& entry = written.header().entries[i];
    uint64_t at = 0;
    merged.each_piece(source, source.header().entries[i], path, [&](const void* bytes, size_t n) {
      back.resize(n);
      written.read(entry, back.data(), n, at);
      at += n;
      if (std::memcmp(back.data(), bytes, n) != 0)
        throw damaged(path, "tensor " + quoted(entry.name));
    });
  }
}

}  // namespace

void write_merged(const ParameterTable& table, const Checkpoint& base, const Pool& pool,
                  const std::string& directory, const FileChanges& changes) {
  NewDirectory result(directory);
  MergedTensors merged(table, base, pool);
  for (const auto& file : base.files()) {
    const std::string path = result.path() + file->path().substr(file->path().rfind('/'));
    write_file(merged, *file, path);
    verify_file(merged, *file, path);
  }
  std::vector<std::string> copied = {"config.json"};
  if (!base.index_text().empty()) copied.push_back("model.safetensors.index.json");
  for (const std::string& name : copied) result.copy(base.directory() + "/" + name, name);
  write_companions(base, changes, result);
  const Checkpoint check(result.path());
  HEARTH_CHECK(check.files().size() == base.files().size(), "write_merged: other shard plan");
  result.publish();
}

}  // namespace hearth
