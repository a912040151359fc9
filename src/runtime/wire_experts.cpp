#include "runtime/wire_experts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/arena.h"
#include "base/hash.h"
#include "comm/shared_expert.h"

namespace hearth {

namespace {

/// What an owner tells of an expert before its frame travels.
struct Chosen {
  double ratio = kDenseRatio, error = 0;
};

/// Memory that is handed out from the start on.
class Room {
 public:
  explicit Room(Bytes memory) : memory_(memory) {}
  std::byte* take(size_t bytes) {
    std::byte* const data = memory_.data + used_;
    used_ += align_up(bytes);
    HEARTH_CHECK(used_ <= memory_.bytes, "wire experts: too little staging memory");
    return data;
  }
  template <class T>
  std::span<T> take_of(int64_t elements) {
    const auto count = static_cast<size_t>(elements);
    return {reinterpret_cast<T*>(take(count * sizeof(T))), count};
  }

 private:
  Bytes memory_;
  size_t used_ = 0;
};

template <class T>
Bytes bytes_of(std::span<T> values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size_bytes()};
}
template <class T>
ConstBytes read_of(std::span<T> values) {
  return {reinterpret_cast<const std::byte*>(values.data()), values.size_bytes()};
}
template <class T>
std::span<T> part(std::span<T> values, std::pair<int64_t, int64_t> range) {
  return values.subspan(static_cast<size_t>(range.first),
                        static_cast<size_t>(range.second - range.first));
}

const View& copy_of(const ParameterTable& table, TensorId id, CopyRole role) {
  return table.tensor(id).copies[static_cast<int>(role)].view;
}

/// What products read, where frames are decoded to.
const View& read_copy(const ParameterTable& table, TensorId id) {
  const View& working = copy_of(table, id, CopyRole::working);
  return working ? working : copy_of(table, id, CopyRole::master);
}

}  // namespace

WireExperts::WireExperts(const RankShards& shards, const ParameterTable& table,
                         const Owners& owners)
    : shards_(shards) {
  if (!shards.wire.compresses() || shards.ranks == 1) return;
  for (BlockId block = 0; block < std::ssize(table.blocks()); ++block) {
    const bool expert = table.block(block).kind == BlockKind::expert;
    if (expert && table.is_trained(block)) add_expert(table, owners, block);
  }
  std::erase_if(layers_, [&](const auto& of) {
    return std::ranges::none_of(of.second.experts,
                                [&](const Expert& expert) { return has_frame(expert); });
  });
  has_.resize(table.blocks().size());
  for (const auto& [number, layer] : layers_) {
    for (const Expert& expert : layer.experts) has_[static_cast<size_t>(expert.block)] = true;
  }
}

void WireExperts::add_expert(const ParameterTable& table, const Owners& owners, BlockId block) {
  const Block& of = table.block(block);
  Layer& layer = layers_[of.layer];
  layer.owns.resize(static_cast<size_t>(shards_.ranks));
  Expert expert{block, of.expert, owners.owner(block), {}, {}, {}};
  layer.owns[static_cast<size_t>(expert.owner)] = true;
  for (const int32_t user : owners.users(block)) {
    if (user != expert.owner) expert.receivers.push_back(user);
  }
  for (TensorId id = of.begin; id < of.end; ++id) {
    const Tensor& tensor = table.tensor(id);
    if (!tensor.trainable) continue;
    const auto same = [&](const Piece& piece) { return piece.slot == tensor.slot; };
    auto piece = std::ranges::find_if(layer.pieces, same);
    if (piece == layer.pieces.end()) {
      layer.pieces.push_back({tensor.slot, layer.elements, tensor.size(), 0});
      layer.elements += tensor.size();
      piece = layer.pieces.end() - 1;
    }
    HEARTH_CHECK(piece->elements == tensor.size(), "wire experts: experts of different sizes");
    ++piece->experts;
    expert.tensors.push_back({id, piece->offset, piece->elements});
    expert.sizes.push_back(piece->elements);
  }
  layer.experts.push_back(std::move(expert));
}

std::vector<int32_t> WireExperts::layers() const {
  std::vector<int32_t> layers;
  for (const auto& [layer, of] : layers_) layers.push_back(layer);
  return layers;
}

std::vector<WiredStep> WireExperts::report() const {
  std::vector<WiredStep> report;
  for (const auto& [layer, of] : layers_) {
    if (of.last) report.push_back(*of.last);
  }
  return report;
}

bool WireExperts::receives(const Expert& expert) const {
  return std::ranges::find(expert.receivers, shards_.rank) != expert.receivers.end();
}

bool WireExperts::has_frame(const Expert& expert) const {
  return shards_.wire.owners_decode() || !expert.receivers.empty();
}

size_t WireExperts::most_bytes(const Expert& expert) const {
  size_t most = frame_bytes(expert.sizes, DType::f32, kDenseRatio);
  for (const double ratio : shards_.wire.ratios()) {
    most = std::max(most, frame_bytes(expert.sizes, DType::f32, ratio));
  }
  return align_up(most);
}

size_t WireExperts::staging_bytes(const ParameterTable& table, int32_t layer, int32_t hosts) const {
  const Layer& of = layers_.at(layer);
  const size_t whole = align_up(static_cast<size_t>(of.elements) * sizeof(float));
  const auto pieces = static_cast<size_t>(shards_.ranks) * kArenaAlignment + whole;
  // Sum, pieces of it from others, mean, its pieces as they travel and as they come.
  size_t bytes = 2 * whole + 3 * pieces;
  for (const Expert& expert : of.experts) {
    if (!owns(expert) && !receives(expert)) continue;
    bytes += most_bytes(expert);
    if (table.block(expert.block).place < hosts) continue;
    for (const int64_t elements : expert.sizes) {  // the master, and what is decoded
      bytes += 2 * align_up(static_cast<size_t>(elements) * sizeof(float));
    }
  }
  return bytes;
}

/// One layer of one step.
class WireExperts::Work {
 public:
  Work(WireExperts& wire, ParameterTable& table, RankTeam& team, DeviceStage& stage, Bytes staging,
       int32_t number)
      : wire_(wire),
        shards_(wire.shards_),
        table_(table),
        team_(team),
        stage_(stage),
        room_(staging),
        number_(number),
        layer_(wire.layers_.at(number)),
        type_(type_on_wire()),
        masters_(layer_.experts.size()),
        frames_(layer_.experts.size()),
        chosen_(layer_.experts.size()) {}

  void run() {
    stage_masters();
    make_shared_expert();
    choose();
    send_frames();
    decode();
    layer_.last = summary();
  }

 private:
  using Masters = std::vector<std::span<const float>>;

  /// Each rank has an expert of each layer.
  DType type_on_wire() const {
    for (const Expert& expert : layer_.experts) {
      const View& copy = read_copy(table_, expert.tensors.front().id);
      if (copy) return copy.dtype;
    }
    HEARTH_CHECK(false, "wire experts: a rank without an expert of a layer");
    return DType::f32;
  }

  /// Of the experts that this rank owns, at the host.
  void stage_masters() {
    for (size_t e = 0; e < layer_.experts.size(); ++e) {
      const Expert& expert = layer_.experts[e];
      if (!wire_.owns(expert)) continue;
      for (const WiredTensor& tensor : expert.tensors) {
        const View& master = copy_of(table_, tensor.id, CopyRole::master);
        HEARTH_CHECK(master.dtype == DType::f32 && master.contiguous(), "wire experts: no master");
        const Place place = table_.block(expert.block).place;
        const auto* data = static_cast<const float*>(master.data);
        if (stage_.is_device(place)) {
          const std::span<float> copy = room_.take_of<float>(tensor.elements);
          stage_.to_host(place, copy.data(), data, copy.size_bytes(), expert.block, false);
          data = copy.data();
        }
        masters_[e].emplace_back(data, static_cast<size_t>(tensor.elements));
      }
    }
    stage_.synchronize();
  }

  void make_shared_expert() {
    mean_ = room_.take_of<float>(layer_.elements);
    if (type_ == DType::bf16) {
      share_mean<bf16>(summed_piece());
    } else {
      share_mean<float>(summed_piece());
    }
    version_ = digest_of(mean_.data(), mean_.size_bytes()).low;
  }

  /// The sum of all experts, of this rank's piece.
  std::span<int32_t> summed_piece() {
    const std::span<int32_t> sum = room_.take_of<int32_t>(layer_.elements);
    std::ranges::fill(sum, 0);
    for (size_t e = 0; e < layer_.experts.size(); ++e) {
      for (size_t t = 0; t < masters_[e].size(); ++t) {
        const WiredTensor& tensor = layer_.experts[e].tensors[t];
        hearth::add_expert(masters_[e][t], experts_at(tensor.offset),
                           part(sum, {tensor.offset, tensor.offset + tensor.elements}));
      }
    }
    const std::pair<int64_t, int64_t> own = wire_.piece_of(layer_, shards_.rank);
    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    std::vector<std::span<int32_t>> parts;
    for (int32_t rank = 0; rank < shards_.ranks; ++rank) {
      if (rank == shards_.rank) continue;
      if (owns_any(shards_.rank)) {
        out.push_back({rank, read_of(part(sum, wire_.piece_of(layer_, rank)))});
      }
      if (!owns_any(rank)) continue;
      parts.push_back(room_.take_of<int32_t>(own.second - own.first));
      in.push_back({rank, bytes_of(parts.back())});
    }
    team_.comm().wait_for(team_.comm().transfer(team_.next(), std::move(out), std::move(in)));
    for (const std::span<int32_t> from : parts) add_sums(from, part(sum, own));
    return part(sum, own);
  }

  template <class T>
  void share_mean(std::span<const int32_t> sum) {
    const auto [begin, end] = wire_.piece_of(layer_, shards_.rank);
    for (const Piece& piece : layer_.pieces) {
      const int64_t from = std::max(begin, piece.offset);
      const int64_t to = std::min(end, piece.offset + piece.elements);
      if (from >= to) continue;
      mean_of(part(sum, {from - begin, to - begin}), piece.experts, type_, part(mean_, {from, to}));
    }
    const std::span<T> own = room_.take_of<T>(end - begin);
    convert(DType::f32, mean_.data() + begin, type_, own.data(), end - begin);
    std::vector<std::span<T>> pieces;
    std::vector<Bytes> from;
    for (int32_t rank = 0; rank < shards_.ranks; ++rank) {
      const auto [first, last] = wire_.piece_of(layer_, rank);
      pieces.push_back(room_.take_of<T>(last - first));
      from.push_back(bytes_of(pieces.back()));
    }
    team_.comm().wait_for(team_.comm().gather(team_.next(), read_of(own), from));
    for (int32_t rank = 0; rank < shards_.ranks; ++rank) {
      const std::span<T> piece = pieces[static_cast<size_t>(rank)];
      convert(type_, piece.data(), DType::f32, mean_.data() + wire_.piece_of(layer_, rank).first,
              std::ssize(piece));
    }
  }

  /// Encodes what this rank owns, and learns what the others chose.
  void choose() {
    std::vector<std::vector<Chosen>> of_rank(static_cast<size_t>(shards_.ranks));
    for (size_t e = 0; e < layer_.experts.size(); ++e) {
      const Expert& expert = layer_.experts[e];
      Chosen chosen;
      if (wire_.owns(expert) && wire_.has_frame(expert)) chosen = encode(e);
      of_rank[static_cast<size_t>(expert.owner)].push_back(chosen);
    }
    std::vector<Chosen> own = of_rank[static_cast<size_t>(shards_.rank)];
    std::vector<Bytes> from;
    for (std::vector<Chosen>& of : of_rank) from.push_back(bytes_of(std::span(of)));
    team_.comm().wait_for(team_.comm().gather(team_.next(), read_of(std::span(own)), from));
    std::vector<size_t> next(of_rank.size());
    for (size_t e = 0; e < layer_.experts.size(); ++e) {
      const auto owner = static_cast<size_t>(layer_.experts[e].owner);
      chosen_[e] = of_rank[owner][next[owner]++];
    }
  }

  /// The first ratio whose error is not above the threshold, else dense.
  Chosen encode(size_t e) {
    const Expert& expert = layer_.experts[e];
    std::vector<SentTensor> tensors;
    for (size_t t = 0; t < expert.tensors.size(); ++t) {
      tensors.push_back({masters_[e][t], shared_of(expert.tensors[t])});
    }
    const size_t most = wire_.most_bytes(expert);
    const Bytes out{room_.take(most), most};
    const auto encoded = [&](double ratio) {
      const Encoded frame = wire_.encoder_.encode(version_of(expert), type_, tensors, ratio, out);
      frames_[e] = {out.data, frame.bytes};
      return frame.error;
    };
    for (const double ratio : shards_.wire.ratios()) {
      const double error = encoded(ratio);
      if (error <= shards_.wire.threshold) return {ratio, error};
    }
    return {kDenseRatio, encoded(kDenseRatio)};
  }

  void send_frames() {
    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    for (size_t e = 0; e < layer_.experts.size(); ++e) {
      const Expert& expert = layer_.experts[e];
      const size_t bytes = frame_bytes(expert.sizes, type_, chosen_[e].ratio);
      if (wire_.owns(expert)) {
        for (const int32_t to : expert.receivers) out.push_back({to, {frames_[e].data, bytes}});
      } else if (wire_.receives(expert)) {
        frames_[e] = {room_.take(bytes), bytes};
        in.push_back({expert.owner, frames_[e]});
      }
    }
    team_.comm().wait_for(team_.comm().transfer(team_.next(), std::move(out), std::move(in)));
  }

  void decode() {
    for (size_t e = 0; e < layer_.experts.size(); ++e) {
      const Expert& expert = layer_.experts[e];
      const bool received = wire_.receives(expert);
      if (!received && !(wire_.owns(expert) && shards_.wire.owners_decode())) continue;
      decode(expert, frames_[e]);
      for (const WiredTensor& tensor : expert.tensors) {
        const bool working = static_cast<bool>(copy_of(table_, tensor.id, CopyRole::working));
        if (received) table_.mark_updated(tensor.id, working);
      }
    }
    stage_.synchronize();
  }

  void decode(const Expert& expert, Bytes frame) {
    const Place place = table_.block(expert.block).place;
    std::vector<ReceivedTensor> tensors;
    for (const WiredTensor& tensor : expert.tensors) {
      const View& copy = read_copy(table_, tensor.id);
      HEARTH_CHECK(copy.dtype == type_ && copy.contiguous(),
                   "wire experts: a copy of another type");
      const bool at_device = stage_.is_device(place);
      tensors.push_back({at_device ? room_.take(copy.bytes()) : copy.raw(), shared_of(tensor)});
    }
    try {
      decode_frame({frame.data, frame.bytes}, version_of(expert), type_, tensors);
    } catch (const Error& error) {
      throw Error(
          error.code(),
          fmt::format("from {}: {}", named_rank(expert.owner, team_.world().host(expert.owner)),
                      error.what()));
    }
    for (size_t t = 0; stage_.is_device(place) && t < tensors.size(); ++t) {
      const View& copy = read_copy(table_, expert.tensors[t].id);
      stage_.to_device(place, copy.raw(), tensors[t].weights, copy.bytes(), expert.block, false);
    }
  }

  WiredStep summary() const {
    WiredStep step;
    double dense = 0, sent = 0;
    for (size_t e = 0; e < layer_.experts.size(); ++e) {
      const std::vector<int64_t>& sizes = layer_.experts[e].sizes;
      dense += static_cast<double>(frame_bytes(sizes, type_, kDenseRatio));
      sent += static_cast<double>(frame_bytes(sizes, type_, chosen_[e].ratio));
      step.error = std::max(step.error, chosen_[e].error);
    }
    step.ratio = dense / sent;
    return step;
  }

  std::span<const float> shared_of(const WiredTensor& tensor) const {
    return part(std::span<const float>(mean_), {tensor.offset, tensor.offset + tensor.elements});
  }
  FrameVersion version_of(const Expert& expert) const {
    return {number_, expert.number, team_.step(), version_};
  }
  bool owns_any(int32_t rank) const { return layer_.owns[static_cast<size_t>(rank)]; }
  /// How many experts have a tensor at an offset of the shared expert.
  int64_t experts_at(int64_t offset) const {
    return std::ranges::find(layer_.pieces, offset, &Piece::offset)->experts;
  }

  WireExperts& wire_;
  const RankShards& shards_;
  ParameterTable& table_;
  RankTeam& team_;
  DeviceStage& stage_;
  Room room_;
  const int32_t number_;
  Layer& layer_;
  const DType type_;
  std::vector<Masters> masters_;  // by expert; empty: another rank owns it
  std::vector<Bytes> frames_;     // by expert; empty: it has no part in it
  std::vector<Chosen> chosen_;    // by expert
  std::span<float> mean_;
  uint64_t version_ = 0;  // of the shared expert
};

void WireExperts::give(ParameterTable& table, RankTeam& team, DeviceStage& stage, Bytes staging,
                       int32_t layer) {
  Work(*this, table, team, stage, staging, layer).run();
}

}  // namespace hearth
