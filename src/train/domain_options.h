// Options of expert domains (`hybrid-ep`): the levels of ranks, and the domains that they name.
#pragma once

#include "comm/expert_domains.h"
#include "model/spec.h"
#include "setup/config.h"

namespace hearth {

/// Usage error, with what would do, unless levels and domains go with the ranks, with each other and with
/// the model's experts, or if they or compressed weights are given without `hybrid-ep`; also if there are
/// no weights to compress.
void require_domains(const TrainConfig& config, const ModelSpec& spec);

/// RankShards::fetched_from of the options.
int32_t fetched_from(const TrainConfig& config, const ModelSpec& spec);

/// Of `hybrid-ep`: the domains of the options; if the plan chooses, the smallest with an expert for each
/// rank that shares them. Call require_domains before.
ExpertDomains domains_of(const TrainConfig& config, const ModelSpec& spec);

}  // namespace hearth
