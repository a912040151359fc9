// Selective experts (--experts top:25%): only the most routed experts of each layer get adapters. A
// first pass of the base over a sample of the training data counts routed tokens (MoE-Sieve, arXiv
// 2603.24044).
#pragma once

#include <optional>
#include <string>

#include "model/adapters.h"
#include "setup/trained_model.h"

namespace hearth {

/// The chosen experts. `record`, for the run's identity and journal: {"option", "sample_tokens",
/// "routed_tokens", "share" (of routed tokens, to chosen experts), "layers": [{"layer", "share",
/// "experts"}]}.
struct ChosenExperts {
  ExpertChoice experts;  // by layer, ascending
  Json record;
};

/// Chooses ceil(percent of the experts) per layer: the experts with the most tokens, the lower
/// index on ties.
ChosenExperts choose_experts(const ExpertCounts& counts, double percent, int64_t sample_tokens);

/// The saved choice, or nullopt if there is none. Sources, in this order: the newest state in --out
/// with a readable manifest; a run that ended there without a state; the state that --resume names.
/// If the state has no choice for these options and this model, returns placeholder experts and an
/// empty record. The identity check then rejects the resume without running the model.
std::optional<ChosenExperts> saved_experts(const TrainConfig& config, const ModelSpec& spec);

/// "experts: 32 of 128 a layer get adapters (--experts top:25%); they took 71 % of 131072 ...".
std::string experts_line(const ChosenExperts& chosen, const ModelSpec& spec);

}  // namespace hearth
