// Which copies of the parameters a run keeps, how large they are, and where they lie.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "model/parameter_table.h"

namespace hearth {

/// Training keeps master, gradient and moments of each trained tensor, all of the type `master` (f32;
/// f64 in gradient checks). For bf16 compute it also keeps a rounded working copy of each trained
/// tensor that enters products. All other tensors are kept once, as stored.
struct CopyPolicy {
  bool training = false;
  Compute compute = Compute::f32;
  DType master = DType::f32;
};

/// Within an arena tensors follow each other in table order, each at a multiple of this many
/// elements, for any type. So neighbours form runs with the same layout in all arenas.
inline constexpr int64_t kTensorAlignment = 64;

/// One arena per place and role, in this order. Empty arenas are left out.
struct ParameterArena {
  Place place;
  CopyRole role;
  std::string name;
  size_t bytes = 0;
};
std::vector<ParameterArena> parameter_arenas(const ParameterTable& table, const CopyPolicy& policy);

/// Where the arenas of a place lie, by role; null where there is none.
using PlaceArenas = std::array<std::byte*, kCopyRoles>;

/// Points the table's copies into the arenas, given by place.
void bind_parameters(ParameterTable& table, const CopyPolicy& policy,
                     std::span<const PlaceArenas> arenas);
/// The same for a table whose blocks are all at the host.
void bind_parameters(ParameterTable& table, const CopyPolicy& policy, const PlaceArenas& host);

/// Neighbouring trained tensors of one place with equal decay that lie in one piece in every arena:
/// the unit of the optimizer. Views are [1, n] and include the zero padding between tensors.
struct UpdateRun {
  TensorId begin = 0, end = 0;
  Place place = kHostPlace;
  bool decayed = false;
  View gradient, master, moment1, moment2, working;  // working may be empty
};
/// The runs of blocks [begin, end).
std::vector<UpdateRun> update_runs(const ParameterTable& table, BlockId begin, BlockId end);

}  // namespace hearth
