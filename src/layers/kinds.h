// The bodies, one per task kind; use them through body_of (layers/body.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

#include "layers/body.h"
#include "layers/split.h"

namespace hearth {

const Body& embed_body();
const Body& attention_body();
const Body& mlp_body();
const Body& dispatch_body();
const Body& experts_body();
const Body& combine_body();
const Body& head_body();
const Body& norm_body();
const Body& clip_body();
const Body& update_body();
const Body& sample_body();
const Body& foretell_body();
const Body& decide_body();
const Body& pack_body();
const Body& divided_body();
const Body& join_body();
const Body& shard_body();
const Body& reduce_body();
const Body& send_counts_body();
const Body& send_rows_body();
const Body& return_rows_body();
const Body& gather_body();
const Body& give_body();
const Body& fetch_body();

/// An empty list with room for `most` elements, in the task's memory for lists.
template <class T>
std::pmr::vector<T> list_of(const BodyContext& c, int64_t most) {
  std::pmr::vector<T> list(c.lists);
  list.reserve(static_cast<size_t>(most));
  return list;
}
/// The bytes that it takes, for Body::lists.
template <class T>
size_t list_bytes(int64_t most) {
  return align_up(static_cast<size_t>(most) * sizeof(T), alignof(std::max_align_t));
}

/// Operations per token of a task's products with the matrices of blocks [begin, end). `forward` is
/// the cost of one forward without adapters. A backward adds the gradient of the input and, for
/// matrices that train, the gradient of the weights. Adapters add their share; they always train.
double matrix_work(const TaskShape& s, double forward, BlockId begin, BlockId end);
/// Number of adapter elements of blocks [begin, end), divided by the number of elements of the
/// blocks' matrices.
double pair_share(const ParameterTable& table, BlockId begin, BlockId end);

/// The blocks of [begin, end) that live at a place, as runs of neighbours.
std::vector<std::pair<BlockId, BlockId>> blocks_at(const ParameterTable& table, BlockId begin,
                                                   BlockId end, Place place);

/// One more than the highest place of a block.
int64_t places_in(const ParameterTable& table);

/// The blocks of the task's layer, without adapters: neighbours. Layer -1 is the embedding, layer L
/// the head.
std::pair<BlockId, BlockId> blocks_of_layer(const TaskShape& s);

/// The same of all TaskShape::layers, with their adapters: those with trained tensors alone.
std::vector<BlockUse> trained_of_layers(const TaskShape& s, BlockAccess access);
/// The numbers of the blocks of uses.
std::vector<BlockId> numbers_of(std::span<const BlockUse> uses);

/// The sums of squares that norm tasks wrote, of each place with trained tensors; of a task whose
/// layer is 0, so that the number of a norm task is the offset of its norms.
std::vector<Port> norm_ports(const TaskShape& s, Access access);
/// The trained tensors of a place that a norm task sums: neighbours, with about equally many elements.
/// The last shares may have none.
std::vector<TensorId> norm_tensors(const ParameterTable& table, Place place, TaskShare share);
/// Where a walk over the norms of a place is.
struct NextNorm {
  int32_t share = -1;
  double* norm = nullptr;
  double* end = nullptr;
};
/// Calls f with the sum of squares of each trained tensor, in table order, whatever its place. Takes
/// each_norm_bytes from the task's memory for lists.
template <class F>
void each_norm(const BodyContext& c, const F& f) {
  std::pmr::vector<NextNorm> next(static_cast<size_t>(places_in(c.table)), c.lists);
  for (const Tensor& t : c.table.tensors()) {
    if (!t.trainable) continue;
    const Place place = c.table.block(t.block).place;
    NextNorm& of = next[static_cast<size_t>(place)];
    while (of.norm == of.end) {
      const ConstView norms = c.in(Value::tensor_norms, norm_number(place, ++of.share));
      of.norm = static_cast<double*>(const_cast<void*>(norms.data));
      of.end = of.norm + norms.rows * norms.cols;
    }
    f(*of.norm++);
  }
}
inline size_t each_norm_bytes(const ParameterTable& table) {
  return list_bytes<NextNorm>(places_in(table));
}

/// What the experts of a task read: a row for each token, or, if tokens are copied to rows, those.
inline Value tokens_of_experts(const TaskShape& s) {
  if (s.copies_rows()) return Value::rows;
  return s.away && s.rounds ? Value::normed_there : Value::normed;
}

/// What a task does that sums the rows of a token's experts, the forward of combine or the backward of
/// dispatch. Without partial sums one task does all.
struct ExpertSum {
  bool begins = true;     // at the dense parts: what the sum is added to
  bool rows = true;       // adds rows: of its part, or of all experts
  bool sends = false;     // writes the sum of a place elsewhere
  bool receives = false;  // adds the sum of a place elsewhere

  explicit ExpertSum(const TaskShape& s) {
    if (!s.moe()) rows = false;
    if (!s.moe() || !s.sums) return;
    const bool whole = s.part.all(), divided = s.split_places > 0;
    begins = whole && !s.away;
    rows = s.away || (!whole && s.part.place == s.place);
    sends = s.away;
    receives = !rows && (!whole || !divided);
  }
};

/// Ports that several kinds declare.
namespace ports {

/// [T, H] activations.
inline Port hidden(const TaskShape& s, Value value, Access access, int32_t layer_offset = 0) {
  return {.value = value,
          .access = access,
          .dtype = s.settings.activations,
          .rows_per_token = 1,
          .cols = s.spec.hidden,
          .layer_offset = layer_offset};
}
/// bf16 [T, H].
inline Port normed_sent(const TaskShape& s, Access access) {
  Port port = hidden(s, Value::normed_sent, access);
  port.dtype = DType::bf16;
  return port;
}
/// [R, H] rows of routed tokens.
inline Port routed(const TaskShape& s, Value value, Access access) {
  return {.value = value,
          .access = access,
          .dtype = s.settings.activations,
          .rows_per_token = s.spec.experts_per_token,
          .cols = s.spec.hidden};
}
/// i32 [T].
inline Port token_ints(Value value, Access access) {
  return {.value = value, .access = access, .dtype = DType::i32, .rows_per_token = 1};
}
/// i32 [R].
inline Port row_ints(const TaskShape& s, Value value, Access access) {
  return {.value = value,
          .access = access,
          .dtype = DType::i32,
          .rows_per_token = s.spec.experts_per_token};
}
/// The same of any value of routed rows, whose rows are of one micro-batch of this rank or of a guest.
inline Port rows(const TaskShape& s, Value value, int64_t cols, Access access) {
  const bool guests = info_of(value).of_part;  // how many there are is not known by the tokens here
  const int64_t k = s.spec.experts_per_token;
  return {.value = value,
          .access = access,
          .dtype = s.settings.activations,
          .rows_per_token = guests ? 0 : k,
          .extra_rows = guests ? rows_apart(k * s.tokens) : 0,
          .cols = cols};
}
/// i32, one for each.
inline Port row_numbers(const TaskShape& s, Value value, Access access) {
  Port port = rows(s, value, 1, access);
  port.dtype = DType::i32;
  return port;
}
inline Port guest_offsets(const TaskShape& s, Access access) {
  const auto [begin, end] = s.ranks.own(s.spec.experts);
  return {.value = Value::guest_offsets,
          .access = access,
          .dtype = DType::i32,
          .extra_rows = s.ranks.ranks * (end - begin + 1)};
}
inline Port guest_keys(const TaskShape& s, Access access) {
  return {.value = Value::guest_keys,
          .access = access,
          .dtype = DType::f64,
          .extra_rows = s.ranks.ranks};
}
/// The split of a divided layer (SplitView).
inline Port split(const TaskShape& s, Access access) {
  return {.value = Value::split,
          .access = access,
          .dtype = DType::i32,
          .extra_rows = SplitView::size(s.spec.experts, s.split_places)};
}
/// DividedView.
inline Port divided(Access access) {
  return {.value = Value::divided,
          .access = access,
          .dtype = DType::i32,
          .extra_rows = DividedView::kSize};
}
/// [T] for the rows of the divided expert, from the first.
inline Port divided_weight(const TaskShape& s, Access access) {
  return {.value = Value::d_divided_weight,
          .access = access,
          .dtype = s.settings.activations,
          .rows_per_token = 1};
}
/// The positions of the experts in the order of the split.
inline Port positions(const TaskShape& s, Access access) {
  return {.value = Value::expert_position,
          .access = access,
          .dtype = DType::i32,
          .extra_rows = s.spec.experts + (s.divides ? 2 : 0)};
}
/// One f64.
inline Port scalar(Value value, Access access) {
  return {.value = value, .access = access, .dtype = DType::f64, .extra_rows = 1};
}

}  // namespace ports

/// The RoutingView of a micro-batch from its declared values.
RoutingView routing_of(const BodyContext& c);
/// Adds the three ports that `routing_of` reads.
void add_routing_ports(const TaskShape& s, Access access, std::vector<Port>& ports);
/// Of a task that computes a part of a layer's experts: the ports that say which rows are its own.
void add_part_ports(const TaskShape& s, std::vector<Port>& ports);
/// Adds what the device's columns of the divided expert give (`part`, from its first row) to that of the
/// host's columns, which is in the rows of this expert (`whole`). Nothing if none is divided.
void add_divided(const BodyContext& c, Value part, Value whole);
/// The offsets of the part's experts, of those of all; empty if the task is of no part.
ConstView part_offsets(const BodyContext& c);

}  // namespace hearth
