#include "verdict/weight_change.h"

#include <algorithm>

#include "base/error.h"
#include "model/parameter_access.h"

namespace hearth {

namespace {

constexpr int64_t kPiece = int64_t{1} << 20;  // elements of a tensor that a worker takes at once

struct Piece {
  TensorId id = 0;
  int64_t begin = 0, count = 0;
};

/// Pieces of the trained tensors, or of the frozen ones.
std::vector<Piece> pieces_of(const ParameterTable& table, bool trained) {
  std::vector<Piece> pieces;
  for (TensorId id = 0; id < std::ssize(table.tensors()); ++id) {
    const Tensor& t = table.tensor(id);
    if (t.trainable != trained) continue;
    for (int64_t begin = 0; begin < t.size(); begin += kPiece) {
      pieces.push_back({id, begin, std::min(kPiece, t.size() - begin)});
    }
  }
  return pieces;
}

struct Sums {
  double start = 0, update = 0;
};

/// Elements of a contiguous f32 copy, as `host_elements` gives them.
const float* floats(const ParameterTable& table, TensorId id, const ConstView& copy, int64_t begin,
                    int64_t n, std::vector<std::byte>& staging) {
  HEARTH_CHECK(copy.dtype == DType::f32 && copy.contiguous(), "weight change: f32 copies");
  const void* at = host_elements(table, table.tensor(id), copy, begin, n, staging);
  return static_cast<const float*>(at);
}

/// A buffer per worker for tensors that the host cannot address.
using Staging = std::vector<std::vector<std::byte>>;

}  // namespace

FrozenContent frozen_content(const ParameterTable& table, const Pool& pool) {
  const std::vector<Piece> pieces = pieces_of(table, false);
  std::vector<Digest> digests(pieces.size());
  Staging staging(static_cast<size_t>(pool.workers()));
  pool.run(std::ssize(pieces), [&](int64_t i, int worker) {
    const Piece& piece = pieces[static_cast<size_t>(i)];
    const Tensor& tensor = table.tensor(piece.id);
    const View view = tensor.home().view;
    const void* at = host_elements(table, tensor, view, piece.begin, piece.count,
                                   staging[static_cast<size_t>(worker)]);
    digests[static_cast<size_t>(i)] =
        digest_of(at, static_cast<size_t>(piece.count) * size_of(view.dtype));
  });
  FrozenContent content;
  Hasher root;
  for (size_t i = 0; i < pieces.size();) {
    const Tensor& t = table.tensor(pieces[i].id);
    Hasher hasher;
    for (const TensorId id = pieces[i].id; i < pieces.size() && pieces[i].id == id; ++i) {
      hasher.update_u64(digests[i].high);
      hasher.update_u64(digests[i].low);
    }
    content.digests.push_back(hasher.digest());
    root.update_field(t.name);
    root.update_field(content.digests.back().hex());
    ++content.tensors;
    content.parameters += t.size();
  }
  content.root = root.digest();
  return content;
}

std::vector<std::string> changed_tensors(const ParameterTable& table, const FrozenContent& before,
                                         const FrozenContent& after) {
  HEARTH_CHECK(before.digests.size() == after.digests.size(), "other tensors were frozen");
  std::vector<std::string> names;
  size_t at = 0;
  for (const Tensor& t : table.tensors()) {
    if (t.trainable || t.size() == 0) continue;
    if (before.digests[at] != after.digests[at]) names.push_back(t.name);
    ++at;
  }
  return names;
}

std::vector<TensorChange> tensor_changes(const ParameterTable& table, const GradientRecord& record,
                                         const Pool& pool) {
  const std::vector<Piece> pieces = pieces_of(table, true);
  std::vector<Sums> sums(pieces.size());
  Staging of_now(static_cast<size_t>(pool.workers())), of_start(of_now.size());
  pool.run(std::ssize(pieces), [&](int64_t i, int worker) {
    const Piece& piece = pieces[static_cast<size_t>(i)];
    const auto w = static_cast<size_t>(worker);
    const float* now = floats(table, piece.id, table.view(piece.id, CopyRole::master), piece.begin,
                              piece.count, of_now[w]);
    const float* start = floats(table, piece.id, table.view(piece.id, CopyRole::gradient),
                                piece.begin, piece.count, of_start[w]);
    Sums& sum = sums[static_cast<size_t>(i)];
    for (int64_t k = 0; k < piece.count; ++k) {
      const double was = start[k], difference = now[k] - was;
      sum.start += was * was;
      sum.update += difference * difference;
    }
  });
  std::vector<TensorChange> changes;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (changes.empty() || changes.back().id != pieces[i].id) changes.push_back({pieces[i].id});
    changes.back().start_square += sums[i].start;
    changes.back().update_square += sums[i].update;
  }
  for (TensorChange& change : changes) {
    change.moved = change.update_square > 0 && record.had_gradient(change.id);
  }
  return changes;
}

}  // namespace hearth
