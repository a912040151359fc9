// The bodies, one a task kind; reached through body_of (layers/body.h).
#pragma once

#include <utility>
#include <vector>

#include "layers/body.h"

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

/// Products of a task over matrices: a backward has the gradient of the input, and that of the
/// weights as far as blocks [begin, end) train; their adapters add their share, all of it trained.
/// `forward`: operations a token, of the blocks alone.
double matrix_work(const TaskShape& s, double forward, BlockId begin, BlockId end);
/// Elements of the adapters of blocks [begin, end), as a share of those of the blocks' matrices.
double pair_share(const ParameterTable& table, BlockId begin, BlockId end);

/// Runs of blocks that lie at a place, of [begin, end).
std::vector<std::pair<BlockId, BlockId>> blocks_at(const ParameterTable& table, BlockId begin,
                                                   BlockId end, Place place);

/// Ports that several kinds declare alike.
namespace ports {

/// [T, H] activations.
inline Port hidden(const TaskShape& s, Value value, Access access, int32_t layer_offset = 0) {
  return {value, access, s.settings.activations, 1, 0, s.spec.hidden, layer_offset};
}
/// [R, H] rows of routed tokens.
inline Port routed(const TaskShape& s, Value value, Access access) {
  return {value, access, s.settings.activations, s.spec.experts_per_token, 0, s.spec.hidden, 0};
}
/// i32 [T].
inline Port token_ints(Value value, Access access) {
  return {value, access, DType::i32, 1, 0, 1, 0};
}
/// One f64.
inline Port scalar(Value value, Access access) { return {value, access, DType::f64, 0, 1, 1, 0}; }

}  // namespace ports

/// For planted faults, where the host reaches the memory: makes the first element NaN, so that
/// whatever is computed from it is; an empty view stays.
void spoil(View v);

/// The RoutingView of a micro-batch from its declared values.
RoutingView routing_of(const BodyContext& c);
/// The three ports behind it.
void add_routing_ports(const TaskShape& s, Access access, std::vector<Port>& ports);

}  // namespace hearth
