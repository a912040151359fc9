// `export --gguf`: a model as one GGUF file, for the ggml runtime.
#pragma once

#include <string>

#include "checkpoint/gguf_types.h"
#include "setup/reporter.h"

namespace hearth {

struct GgufConfig {
  GgufType type = GgufType::f16;  // of the matrices
  std::string model;              // or the base; empty with from_state: the run's --model
  std::string model_name;         // as the user named it; empty: `model`
  std::string adapter;            // to merge into it; empty: none
  std::string from_state;         // instead of both: a state or a run directory; empty: none
  std::string out;                // the file, which must not exist
  bool accept_other_base = false;
  bool fused_as_peft = false;
  bool follow_links = false;
};

/// Writes the file that the ggml project's converter would make of the model, of the model with the adapter
/// merged, or of what `export --from-state` makes (an adapter is merged). The weights are rounded to
/// the checkpoint's types first. Memory: the adapter, and buffers of some MiB.
/// Usage error if `out` exists. Input error for a model or tokenizer without a GGUF form. Numeric
/// error for a weight that the type cannot hold. Other errors as export_state.
void export_gguf(const GgufConfig& config, Reporter& reporter);

}  // namespace hearth
