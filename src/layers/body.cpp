#include "layers/body.h"

#include <limits>
#include <string>

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

View bound_view(const BodyContext& c, Value value, int32_t layer_offset, bool writing) {
  for (const BoundPort& bound : c.ports) {
    const Port& p = bound.port;
    if (p.value != value || p.layer_offset != layer_offset) continue;
    HEARTH_CHECK(
        !writing || p.access != Access::read,
        "body writes a value that it declared as read: " + std::string(info_of(value).name));
    return {bound.data, p.dtype, p.rows(c.batch.tokens), p.cols};
  }
  HEARTH_CHECK(false,
               "body uses a value that it did not declare: " + std::string(info_of(value).name));
  return {};
}

}  // namespace

ConstView BodyContext::in(Value value, int32_t layer_offset) const {
  return bound_view(*this, value, layer_offset, false);
}

View BodyContext::out(Value value, int32_t layer_offset) const {
  return bound_view(*this, value, layer_offset, true);
}

const Body& body_of(TaskKind kind) {
  switch (kind) {
    case TaskKind::embed: return embed_body();
    case TaskKind::attention: return attention_body();
    case TaskKind::mlp: return mlp_body();
    case TaskKind::dispatch: return dispatch_body();
    case TaskKind::experts: return experts_body();
    case TaskKind::combine: return combine_body();
    case TaskKind::head: return head_body();
    case TaskKind::norm: return norm_body();
    case TaskKind::clip: return clip_body();
    case TaskKind::update:
    case TaskKind::copy: break;
  }
  HEARTH_CHECK(kind == TaskKind::update, "a copy has no body");
  return update_body();
}

void spoil(View v) {
  if (!v || v.size() == 0) return;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  convert(DType::f32, &nan, v.dtype, v.raw(), 1);
}

}  // namespace hearth
