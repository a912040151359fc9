// Which copies of the parameters a run keeps, their sizes, and their addresses.
#pragma once

#include <array>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/parameter_table.h"

namespace hearth {

/// Training keeps master, gradient and moments of each trained tensor, all of type `master` (f32;
/// f64 in gradient checks). With bf16 compute it also keeps a rounded working copy of each trained
/// tensor that enters products. All other tensors have one copy, as stored; with bf16 compute, those
/// of f32 that enter products are rounded. Of several ranks, those that do not update a block keep no
/// moments of it (Block::owned), and those that do not compute with it either keep no copy
/// (Block::present), or the gradient alone (Block::fetched). With `wired`, each trained tensor of an expert has a working copy in any case: what
/// ranks compute with is not its master (--wire-consistent).
struct CopyPolicy {
  bool training = false;
  Compute compute = Compute::f32;
  DType master = DType::f32;
  bool wired = false;
};

/// The type of a copy of a tensor; nullopt if a run does not keep that copy.
std::optional<DType> copy_type(const ParameterTable& table, TensorId id, CopyRole role,
                               const CopyPolicy& policy);

/// The type in which products read a tensor, whether or not this rank keeps copies of it.
DType read_type(const ParameterTable& table, TensorId id, const CopyPolicy& policy);

/// An arena holds its tensors in table order, each at a multiple of this many elements, whatever
/// the type. So neighbours form runs with the same layout in all arenas.
inline constexpr int64_t kTensorAlignment = 64;

/// One arena per place and role, in this order. Empty arenas are left out.
struct ParameterArena {
  Place place;
  CopyRole role;
  std::string name;
  size_t bytes = 0;
};
std::vector<ParameterArena> parameter_arenas(const ParameterTable& table, const CopyPolicy& policy);

/// Bytes of all copies of a tensor, without padding.
size_t parameter_bytes(const ParameterTable& table, TensorId id, const CopyPolicy& policy);

/// Addresses of the arenas of a place, by role; null: no arena.
using PlaceArenas = std::array<std::byte*, kCopyRoles>;

/// Points the table's copies into the arenas, which are indexed by place.
void bind_parameters(ParameterTable& table, const CopyPolicy& policy,
                     std::span<const PlaceArenas> arenas);
/// The same for a table whose blocks are all on the host.
void bind_parameters(ParameterTable& table, const CopyPolicy& policy, const PlaceArenas& host);

/// Whether two blocks have the same tensors, and the same copies of each.
bool have_equal_memory(const ParameterTable& table, BlockId a, BlockId b);
/// Two such blocks exchange their memory, and with it their places; each keeps its content. Nothing may
/// be at work on them.
void exchange_memory(ParameterTable& table, BlockId a, BlockId b);

/// The unit of the optimizer: neighbouring trained tensors of one place, with equal decay, that are
/// contiguous in every arena. Views are [1, n] and include the zero padding between tensors.
struct UpdateRun {
  TensorId begin = 0, end = 0;
  Place place = kHostPlace;
  bool decayed = false;
  View gradient, master, moment1, moment2, working;  // working may be empty, and moments
  Factor factor = Factor::none;                      // of the first tensor
};
/// The runs of blocks [begin, end).
std::pmr::vector<UpdateRun> update_runs(const ParameterTable& table, BlockId begin, BlockId end);
/// Appends them to `runs`: at most one per tensor. `by_factor`: a run has either A, B or other tensors.
void add_update_runs(const ParameterTable& table, BlockId begin, BlockId end, bool by_factor,
                     std::pmr::vector<UpdateRun>& runs);

}  // namespace hearth
