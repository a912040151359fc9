// Selective experts (--experts top:25%): a layer's most routed experts get adapters, by a first pass
// of the base over a sample of the training data (MoE-Sieve, arXiv 2603.24044).
#pragma once

#include <optional>
#include <string>

#include "data/samples/sampler.h"
#include "model/adapters.h"
#include "setup/opened_model.h"

namespace hearth {

/// Tokens of the sample: the first whole micro-batches of the run with as many, an epoch at most.
inline constexpr int64_t kExpertSampleTokens = 65536;

/// Tokens of a sample that each expert of a layer got; empty for layers without experts.
using ExpertCounts = std::vector<std::vector<double>>;

/// What was chosen. `record` is kept in the run's identity and journal: {"option", "sample_tokens",
/// "routed_tokens", "share" (of the routed tokens, that went to chosen experts), "layers": [{"layer",
/// "share", "experts"}]}.
struct ChosenExperts {
  ExpertChoice experts;  // by layer, ascending
  Json record;
};

/// ceil(percent of the experts) of each layer: those with most tokens, the lower index on ties.
ChosenExperts choose_experts(const ExpertCounts& counts, double percent, int64_t sample_tokens);

struct SampleCounts {
  ExpertCounts counts;
  int64_t tokens = 0;  // of the sample
};

/// Runs the base, without adapters, over the sample. All memory of the pass is released. Usage error
/// if it does not fit.
SampleCounts count_expert_tokens(const std::shared_ptr<const OpenedModel>& opened,
                                 const TrainConfig& config, const RowSet& rows,
                                 uint64_t data_bytes);

/// The choice of the newest state in --out whose manifest can be read, of a run that ended there
/// without a state, or of the state that --resume names; nullopt if there is none. If the state holds
/// no choice for these options and this model, returns placeholder experts and an empty record, so
/// that the later identity check rejects the resume without running the model.
std::optional<ChosenExperts> saved_experts(const TrainConfig& config, const ModelSpec& spec);

/// "experts: 32 of 128 a layer get adapters (--experts top:25%); they took 71 % of 131072 ...".
std::string experts_line(const ChosenExperts& chosen, const ModelSpec& spec);

}  // namespace hearth
