// What the units of a model cost where they are computed: seconds, and slots for what travels. Units
// are the embedding, the layers, and the head, in this order.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "budget/plan.h"

namespace hearth {

inline constexpr std::array<Phase, 2> kForwardAndBackward = {Phase::forward, Phase::backward};

/// [place][unit]: seconds of a micro-batch in these phases, by cost tables if all the places have one;
/// else floating-point operations. The head's one task counts as forward.
std::vector<std::vector<double>> unit_seconds(const PlanSubject& subject,
                                              const PlanRequest& request,
                                              std::span<const Place> places,
                                              std::span<const Phase> phases);

/// [unit]: bytes of the slots that its weights fill, and with `gradients` their accumulators, too.
std::vector<uint64_t> unit_slot_bytes(const ParameterTable& table, const CopyPolicy& policy,
                                      bool gradients);

/// Bytes of the slots of a place.
uint64_t slot_bytes_at(const Plan& plan, Place place);

/// Whether the slots of each place take its largest stage twice: the one that runs and the next.
/// `units`: of unit_slot_bytes.
bool two_stages_fit(const Plan& plan, std::span<const Stage> stages,
                    std::span<const uint64_t> units);

}  // namespace hearth
