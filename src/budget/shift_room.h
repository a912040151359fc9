// How many experts can move with zebra: what the memory of either role allows.
#pragma once

#include <functional>
#include <string>

#include "budget/placed_model.h"
#include "plan/zebra/expert_shift.h"

namespace hearth {

/// For people, what the ranks of a role lack of memory. Empty: nothing, as far as is known.
struct RolesLack {
  std::string attention, experts;
  bool nothing() const { return attention.empty() && experts.empty(); }
};
/// Of a plan of rank 0.
using LackOfRoles = std::function<RolesLack(const PlacedModel& leader)>;

/// Finds bounds by plans of even shifts: the more experts move, the more attention ranks need, and the less
/// expert ranks. `lack_of`: of a shift. Where no shift helps a role, its bound is none.
ShiftBounds room_for_shift(const ZebraTimes& times,
                           const std::function<RolesLack(const ExpertShift&)>& lack_of);

}  // namespace hearth
