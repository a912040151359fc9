// Reading the weights of an opened checkpoint.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/stop.h"
#include "checkpoint/checkpoint.h"
#include "model/parameter_access.h"
#include "model/weight_copy.h"

namespace hearth {
namespace {

/// A piece of a tensor of the table, and where it is stored.
struct Piece {
  const PublishedTensor* published = nullptr;
  int64_t at = 0;  // element of the published tensor
  TensorId tensor = 0;
  int64_t begin = 0;
  int64_t count = 0;
};

size_t pieces_in(const Tensor& tensor) {
  return static_cast<size_t>((tensor.size() + kPieceElements - 1) / kPieceElements);
}

std::vector<Piece> pieces_of(const ParameterTable& table, const PublishedLayout& layout,
                             WeightSet set) {
  const auto is_wanted = [&](TensorId id) {
    return table.is_present(id) && (set == WeightSet::all || table.tensor(id).trainable);
  };
  size_t wanted = 0;
  for (TensorId id = 0; id < std::ssize(table.tensors()); ++id) {
    wanted += is_wanted(id) ? pieces_in(table.tensor(id)) : 0;
  }
  std::vector<Piece> pieces;
  pieces.reserve(wanted);
  for (const PublishedTensor& published : layout.tensors()) {
    int64_t at = 0;
    for (const TensorId id : published.parts) {
      const int64_t size = is_wanted(id) ? table.tensor(id).size() : 0;
      for (int64_t begin = 0; begin < size; begin += kPieceElements) {
        const int64_t count = std::min(kPieceElements, size - begin);
        pieces.push_back({&published, at + begin, id, begin, count});
      }
      at += table.tensor(id).size();
    }
  }
  return pieces;
}

void require_finite(const SafetensorsFile& file, const std::string& tensor, DType type,
                    const void* data, int64_t begin, int64_t n) {
  const int64_t bad = find_not_finite(type, data, n);
  if (bad == n) return;
  throw input_error(file.path() + ": tensor " + quoted(tensor) + ": element " +
                    std::to_string(begin + bad) + " is not finite (NaN or infinity)");
}

}  // namespace

void Checkpoint::read_weights(ParameterTable& table, const Pool& pool, WeightSet set) const {
  const std::vector<Piece> pieces = pieces_of(table, layout_, set);
  struct Buffers {
    std::vector<float> stored = std::vector<float>(kPieceElements);
    std::vector<std::byte> staging;  // of copies that the host does not reach
  };
  std::vector<Buffers> buffers(static_cast<size_t>(pool.workers()));
  pool.run(static_cast<int64_t>(pieces.size()), [&](int64_t i, int worker) {
    leave_if_stopped("the model was read");
    const Piece& piece = pieces[static_cast<size_t>(i)];
    Tensor& tensor = table.tensor(piece.tensor);
    const TensorLocation& location = this->location(piece.published->name);
    const SafetensorsFile& file = *files_[static_cast<size_t>(location.file)];
    const DType type = tensor.stored;
    Buffers& own = buffers[static_cast<size_t>(worker)];
    void* buffer = own.stored.data();
    const auto put = [&](const Copy& copy) {
      HEARTH_CHECK(copy.view.contiguous(), "read_weights: copy with gaps");
      put_elements(table, tensor, copy.view, piece.begin, type, buffer, piece.count, own.staging);
    };
    file.read(location.entry, buffer, static_cast<size_t>(piece.count) * size_of(type),
              static_cast<uint64_t>(piece.at) * size_of(type));
    require_finite(file, piece.published->name, type, buffer, piece.at, piece.count);
    Copy& home = tensor.home();
    HEARTH_CHECK(home.present(), "read_weights: no memory for tensor " + tensor.name);
    put(home);
    Copy& working = tensor.copies[static_cast<int>(CopyRole::working)];
    if (working.present() && set == WeightSet::all) put(working);
  });
  if (set == WeightSet::trained) return;
  for (Tensor& tensor : table.tensors()) {
    tensor.home().version = tensor.version;
    tensor.copies[static_cast<int>(CopyRole::working)].version = tensor.version;
  }
  buffers.clear();  // the plan has them and those of the check as one line
  check_tied_copies();
}

// transformers ties a stored head only when it equals the embedding; another one would be a model
// that is not tied although config.json says so.
void Checkpoint::check_tied_copies() const {
  constexpr int64_t kCompared = kPieceElements / 3;  // the buffers together are those of a worker
  std::vector<float> stored, first, second;
  const auto read = [&](const TensorLocation& at, int64_t begin, int64_t n, float* out) {
    const DType type = *safetensors_dtype(at.entry.dtype);
    files_[static_cast<size_t>(at.file)]->read(at.entry, stored.data(),
                                               static_cast<size_t>(n) * size_of(type),
                                               static_cast<uint64_t>(begin) * size_of(type));
    convert(type, stored.data(), DType::f32, out, n);
  };
  for (const auto& [name, at] : locations_) {
    const std::string source = family_->tied_source(spec_, name);
    if (source.empty()) continue;
    for (std::vector<float>* buffer : {&stored, &first, &second}) buffer->resize(kCompared);
    const int64_t size = at.entry.shape[0] * at.entry.shape[1];
    for (int64_t begin = 0; begin < size; begin += kCompared) {
      const int64_t n = std::min(kCompared, size - begin);
      read(at, begin, n, first.data());
      read(location(source), begin, n, second.data());
      if (std::equal(first.begin(), first.begin() + n, second.begin())) continue;
      throw input_error(files_[static_cast<size_t>(at.file)]->path() + ": tensor " + quoted(name) +
                        " differs from " + quoted(source) + ", although config.json says " +
                        "tie_word_embeddings; set it to false if the two are separate");
    }
  }
}

void Checkpoint::check_finite() const {
  std::vector<float> buffer(kPieceElements);
  for (const auto& [name, at] : locations_) {
    const SafetensorsFile& file = *files_[static_cast<size_t>(at.file)];
    const bool tied = !family_->tied_source(spec_, name).empty();
    if (layout_.find(name) == nullptr && !tied) continue;  // no part of the model
    const DType type = *safetensors_dtype(at.entry.dtype);
    const auto size = static_cast<int64_t>((at.entry.end - at.entry.begin) / size_of(type));
    for (int64_t begin = 0; begin < size; begin += kPieceElements) {
      const int64_t n = std::min(kPieceElements, size - begin);
      file.read(at.entry, buffer.data(), static_cast<size_t>(n) * size_of(type),
                static_cast<uint64_t>(begin) * size_of(type));
      require_finite(file, name, type, buffer.data(), begin, n);
    }
  }
}

uint64_t Checkpoint::read_buffer_bytes(int workers, bool staged) {
  return static_cast<uint64_t>(staged ? 2 * workers : workers) * kPieceElements * sizeof(float);
}

uint64_t Checkpoint::reading_bytes(const ParameterTable& table, int workers, bool staged) {
  size_t pieces = 0;
  for (TensorId id = 0; id < std::ssize(table.tensors()); ++id) {
    pieces += table.is_present(id) ? pieces_in(table.tensor(id)) : 0;
  }
  return read_buffer_bytes(workers, staged) + pieces * sizeof(Piece);
}

std::vector<std::pair<std::string, Digest>> Checkpoint::digests() const {
  constexpr size_t kBuffer = size_t{4} << 20;
  std::vector<std::byte> buffer(kBuffer);
  std::vector<std::pair<std::string, Digest>> out;
  const auto add = [&](const std::string& name) {
    const InputFile file(directory_ + "/" + name);
    Hasher hasher;
    for (uint64_t at = 0; at < file.size(); at += kBuffer) {
      leave_if_stopped("the model was read");
      const auto bytes = static_cast<size_t>(std::min<uint64_t>(kBuffer, file.size() - at));
      file.read(buffer.data(), bytes, at);
      hasher.update(buffer.data(), bytes);
    }
    out.emplace_back(name, hasher.digest());
  };
  add("config.json");
  for (const auto& file : files_) add(file->path().substr(file->path().rfind('/') + 1));
  for (const std::string& name : companions_) add(name);
  return out;
}

}  // namespace hearth
