// How often each expert is used in a sample of the training data: what chooses experts for adapters
// (--experts top:25%) and experts that devices hold (--policy static).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "data/samples/sampler.h"
#include "modes/hot_experts.h"
#include "setup/opened_model.h"

namespace hearth {

/// Size of the sample: the first micro-batches of the run until they have this many tokens, at most
/// one epoch.
inline constexpr int64_t kExpertSampleTokens = 65536;

struct SampleCounts {
  ExpertCounts counts;  // routed tokens
  int64_t tokens = 0;   // in the sample
};

/// Runs the base, without adapters, over the sample, then releases all memory of this pass. Usage
/// error if the pass does not fit; `count_if_it_fits` gives none then.
SampleCounts count_expert_tokens(const std::shared_ptr<const OpenedModel>& opened,
                                 const TrainConfig& config, const RowSet& rows,
                                 uint64_t data_bytes);
std::optional<SampleCounts> count_if_it_fits(const std::shared_ptr<const OpenedModel>& opened,
                                             const TrainConfig& config, const RowSet& rows,
                                             uint64_t data_bytes);
/// "experts as popular as in a sample of 65536 tokens".
std::string popularity_of(const SampleCounts& sample);

/// For a saved state: {"tokens", "experts": [by layer: [tokens by expert]]}.
Json sample_record(const SampleCounts& sample);
/// That of the state that the run would resume; nullopt if it has none for a model of this shape.
std::optional<SampleCounts> saved_sample(const TrainConfig& config, const ModelSpec& spec);

}  // namespace hearth
