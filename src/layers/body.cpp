#include "layers/body.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include "layers/kinds.h"

namespace hearth {

std::string_view name_of(TaskKind kind) {
  switch (kind) {
    case TaskKind::embed: return "embed";
    case TaskKind::attention: return "attention";
    case TaskKind::mlp: return "mlp";
    case TaskKind::dispatch: return "dispatch";
    case TaskKind::experts: return "experts";
    case TaskKind::combine: return "combine";
    case TaskKind::head: return "head";
    case TaskKind::norm: return "norm";
    case TaskKind::clip: return "clip";
    case TaskKind::update: return "update";
    case TaskKind::sample: return "sample";
    case TaskKind::foretell: return "foretell";
    case TaskKind::decide: return "decide";
    case TaskKind::pack: return "pack";
    case TaskKind::divided: return "divided";
    case TaskKind::join: return "join";
    case TaskKind::shard: return "shard";
    case TaskKind::reduce: return "reduce";
    case TaskKind::send_counts: return "send_counts";
    case TaskKind::send_rows: return "send_rows";
    case TaskKind::return_rows: return "return_rows";
    case TaskKind::gather: return "gather";
    case TaskKind::give: return "give";
    case TaskKind::fetch: return "fetch";
    case TaskKind::copy: return "copy";
  }
  return "?";
}

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::forward: return "forward";
    case Phase::recompute: return "recompute";
    case Phase::backward: return "backward";
  }
  return "?";
}

namespace {

struct Elements {
  int64_t all = 0, trained = 0;
};

/// Of the matrices of blocks [begin, end).
Elements matrix_elements(const ParameterTable& table, BlockId begin, BlockId end) {
  Elements elements;
  if (begin == end) return elements;
  for (TensorId id = table.block(begin).begin; id < table.block(end - 1).end; ++id) {
    const Tensor& t = table.tensor(id);
    if (t.vector) continue;
    elements.all += t.size();
    if (t.trainable) elements.trained += t.size();
  }
  return elements;
}

double ratio(int64_t part, int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::vector<std::pair<BlockId, BlockId>> blocks_at(const ParameterTable& table, BlockId begin,
                                                   BlockId end, Place place) {
  std::vector<std::pair<BlockId, BlockId>> runs;
  for (BlockId id = begin; id < end; ++id) {
    if (table.block(id).place != place) continue;
    if (runs.empty() || runs.back().second != id) runs.emplace_back(id, id);
    runs.back().second = id + 1;
  }
  return runs;
}

int64_t places_in(const ParameterTable& table) {
  Place last = kHostPlace;
  for (const Block& block : table.blocks()) last = std::max(last, block.place);
  return last + 1;
}

std::pair<BlockId, BlockId> blocks_of_layer(const TaskShape& s) {
  BlockId begin = 0, end = 0;
  const auto count = static_cast<BlockId>(s.table.blocks().size());
  for (BlockId id = 0; id < count; ++id) {
    const Block& b = s.table.block(id);
    const int32_t layer = b.kind == BlockKind::embedding ? -1
                          : b.kind == BlockKind::head    ? static_cast<int32_t>(s.spec.layers)
                                                         : b.layer;
    if (layer != s.layer || b.kind == BlockKind::adapter) continue;
    if (begin == end) begin = id;
    end = id + 1;
  }
  return {begin, end};
}

std::vector<BlockUse> trained_of_layers(const TaskShape& s, BlockAccess access) {
  std::vector<BlockUse> uses;
  const auto add = [&](BlockId from, BlockId to) {
    for (BlockId id = from; id < to; ++id) {
      if (!s.table.is_trained(id)) continue;
      if (!uses.empty() && uses.back().end == id) {
        uses.back().end = id + 1;
      } else {
        uses.push_back({id, id + 1, access});
      }
    }
  };
  for (TaskShape one = s; one.layer < s.layer + s.layers; ++one.layer) {
    const auto [begin, end] = blocks_of_layer(one);
    const auto [first, last] = s.table.adapters_of(begin, end);
    add(begin, end);
    add(first, last);
  }
  return uses;
}

int32_t norm_number(Place place, int32_t share) {
  constexpr int32_t kMostPlaces = 1 << 16;
  return place + share * kMostPlaces;
}

std::vector<TensorId> norm_tensors(const ParameterTable& table, Place place, TaskShare share) {
  const auto is_here = [&](const Tensor& t) {
    return t.trainable && table.block(t.block).place == place;
  };
  int64_t all = 0, before = 0;
  for (const Tensor& t : table.tensors()) all += is_here(t) ? t.size() : 0;
  std::vector<TensorId> tensors;
  BlockId block = -1;  // blocks are not cut
  int64_t number = 0;  // without gaps, however large a block is
  for (TensorId id = 0; id < std::ssize(table.tensors()); ++id) {
    const Tensor& t = table.tensor(id);
    if (!is_here(t)) continue;
    if (std::exchange(block, t.block) != t.block) {
      number = std::min(number + 1, before * share.count / all);
    }
    if (number == share.number) tensors.push_back(id);
    before += t.size();
  }
  return tensors;
}

std::vector<Port> norm_ports(const TaskShape& s, Access access) {
  std::set<Place> places;
  Place last = -1;  // neighbours mostly are at one place
  for (const Tensor& t : s.table.tensors()) {
    if (!t.trainable) continue;
    const Place place = s.table.block(t.block).place;
    if (std::exchange(last, place) != place) places.insert(place);
  }
  std::vector<Port> list;
  for (const Place place : places) {
    TaskShare share{0, place == kHostPlace ? s.norm.count : 1};
    for (; share.number < share.count; ++share.number) {
      const std::vector<TensorId> tensors = norm_tensors(s.table, place, share);
      if (tensors.empty()) continue;
      list.push_back({.value = Value::tensor_norms,
                      .access = access,
                      .dtype = DType::f64,
                      .extra_rows = std::ssize(tensors),
                      .layer_offset = norm_number(place, share.number)});
    }
  }
  return list;
}

std::vector<BlockId> numbers_of(std::span<const BlockUse> uses) {
  std::vector<BlockId> numbers;
  for (const BlockUse& use : uses) {
    for (BlockId id = use.begin; id < use.end; ++id) numbers.push_back(id);
  }
  return numbers;
}

double pair_share(const ParameterTable& table, BlockId begin, BlockId end) {
  const auto [first, last] = table.adapters_of(begin, end);
  return ratio(matrix_elements(table, first, last).all, matrix_elements(table, begin, end).all);
}

double matrix_work(const TaskShape& s, double forward, BlockId begin, BlockId end) {
  const double of_pairs = pair_share(s.table, begin, end);
  if (s.phase != Phase::backward) return forward * (1 + of_pairs);
  const Elements base = matrix_elements(s.table, begin, end);
  return forward * (1 + ratio(base.trained, base.all) + 2 * of_pairs);
}

namespace {

const BoundPort& bound_port(const BodyContext& c, Value value, int32_t layer_offset) {
  const auto found = std::ranges::find_if(c.ports, [&](const BoundPort& bound) {
    return bound.port.value == value && bound.port.layer_offset == layer_offset;
  });
  HEARTH_CHECK(found != c.ports.end(),
               "body uses a value that it did not declare: " + std::string(info_of(value).name));
  return *found;
}

int64_t stride_of(const BoundPort& bound) {
  const auto row = static_cast<size_t>(bound.port.cols) * size_of(bound.port.dtype);
  HEARTH_CHECK(bound.stride % row == 0, "body: a micro-batch begins within a row");
  return static_cast<int64_t>(bound.stride / row);
}

View bound_view(const BodyContext& c, Value value, int32_t layer_offset, bool writing) {
  const BoundPort& bound = bound_port(c, value, layer_offset);
  const Port& p = bound.port;
  HEARTH_CHECK(!writing || p.access != Access::read,
               "body writes a value that it declared as read: " + std::string(info_of(value).name));
  if (c.segments() == 1) return {bound.data, p.dtype, p.rows(c.batch.tokens), p.cols};
  const int64_t before = (c.segments() - 1) * stride_of(bound);
  return {bound.data, p.dtype, before + p.rows(c.batches.back().tokens), p.cols};
}

}  // namespace

bool BodyContext::has(Value value) const {
  return std::any_of(ports.begin(), ports.end(),
                     [&](const BoundPort& b) { return b.port.value == value; });
}

int64_t BodyContext::stride(Value value, int32_t layer_offset) const {
  return stride_of(bound_port(*this, value, layer_offset));
}

ConstView BodyContext::in(Value value, int32_t layer_offset) const {
  return bound_view(*this, value, layer_offset, false);
}

View BodyContext::out(Value value, int32_t layer_offset) const {
  return bound_view(*this, value, layer_offset, true);
}

namespace {

const Body*& entry_of(TaskKind kind) {
  static std::array<const Body*, static_cast<size_t>(TaskKind::copy)> bodies = [] {
    std::array<const Body*, static_cast<size_t>(TaskKind::copy)> table{};
    const auto set = [&](TaskKind of, const Body& body) { table[static_cast<size_t>(of)] = &body; };
    set(TaskKind::embed, embed_body());
    set(TaskKind::attention, attention_body());
    set(TaskKind::mlp, mlp_body());
    set(TaskKind::dispatch, dispatch_body());
    set(TaskKind::experts, experts_body());
    set(TaskKind::combine, combine_body());
    set(TaskKind::head, head_body());
    set(TaskKind::norm, norm_body());
    set(TaskKind::clip, clip_body());
    set(TaskKind::update, update_body());
    set(TaskKind::sample, sample_body());
    set(TaskKind::foretell, foretell_body());
    set(TaskKind::decide, decide_body());
    set(TaskKind::pack, pack_body());
    set(TaskKind::divided, divided_body());
    set(TaskKind::join, join_body());
    set(TaskKind::shard, shard_body());
    set(TaskKind::reduce, reduce_body());
    set(TaskKind::send_counts, send_counts_body());
    set(TaskKind::send_rows, send_rows_body());
    set(TaskKind::return_rows, return_rows_body());
    set(TaskKind::gather, gather_body());
    set(TaskKind::give, give_body());
    set(TaskKind::fetch, fetch_body());
    return table;
  }();
  HEARTH_CHECK(kind != TaskKind::copy, "a copy has no body");
  return bodies[static_cast<size_t>(kind)];
}

}  // namespace

const Body& body_of(TaskKind kind) { return *entry_of(kind); }

const Body& replace_body(TaskKind kind, const Body& body) {
  return *std::exchange(entry_of(kind), &body);
}

}  // namespace hearth
