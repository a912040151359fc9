#include "train/weight_change.h"

#include <algorithm>

#include "base/error.h"

namespace hearth {

namespace {

constexpr int64_t kPiece = int64_t{1} << 20;  // elements of a tensor that a worker takes at once

struct Piece {
  TensorId id = 0;
  int64_t begin = 0, count = 0;
};

/// Pieces of the tensors that are trained, or of those that are not.
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

/// A gradient leaves a moment behind that is other than 0.
bool had_gradient(const View& moment) {
  const auto* m = moment.as<float>();
  return std::any_of(m, m + moment.size(), [](float x) { return x != 0; });
}

}  // namespace

FrozenContent frozen_content(const ParameterTable& table, const Pool& pool) {
  const std::vector<Piece> pieces = pieces_of(table, false);
  std::vector<Digest> digests(pieces.size());
  pool.run(std::ssize(pieces), [&](int64_t i, int) {
    const Piece& piece = pieces[static_cast<size_t>(i)];
    const View view = table.tensor(piece.id).home().view;
    const size_t each = size_of(view.dtype);
    digests[static_cast<size_t>(i)] =
        digest_of(static_cast<const std::byte*>(view.data) + piece.begin * each,
                  static_cast<size_t>(piece.count) * each);
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

std::vector<TensorChange> tensor_changes(const ParameterTable& table, const Pool& pool) {
  const std::vector<Piece> pieces = pieces_of(table, true);
  std::vector<Sums> sums(pieces.size());
  pool.run(std::ssize(pieces), [&](int64_t i, int) {
    const Piece& piece = pieces[static_cast<size_t>(i)];
    const auto* now = table.view(piece.id, CopyRole::master).as<float>() + piece.begin;
    const auto* start = table.view(piece.id, CopyRole::gradient).as<float>() + piece.begin;
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
    change.moved =
        change.update_square > 0 && had_gradient(table.view(change.id, CopyRole::moment1));
  }
  return changes;
}

}  // namespace hearth
