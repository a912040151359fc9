// hearth export: saved state as a checkpoint or an adapter, a model with its adapter merged, or
// a GGUF file.
#include <optional>

#include "base/error_format.h"
#include "commands/commands.h"
#include "commands/option_checks.h"
#include "commands/output.h"
#include "train/export.h"
#include "train/export_gguf.h"

namespace hearth {

/// A checkpoint is what export would make of it.
[[noreturn]] static void refuse_checkpoint(const std::string& model) {
  throw usage_error(
      "--model {}: is a checkpoint already; copy it, or give --gguf TYPE for a GGUF file, "
      "--adapter DIR to merge an adapter, --from-state DIR for saved state",
      quoted(model));
}

static void export_result(const Options& options) {
  Console console(console_settings(options));
  if (options.gguf) {
    export_gguf({*options.gguf, options.model, options.model_name, options.adapter,
                 options.from_state, options.out, options.accept_other_base,
                 options.adapter_layout == AdapterLayout::fused, options.follow_links},
                console);
    return;
  }
  if (!options.adapter.empty()) {
    export_merged(
        {options.model, options.adapter, options.out, options.accept_other_base,
         options.adapter_layout == AdapterLayout::fused, options.follow_links, options.model_name},
        console);
    return;
  }
  if (options.from_state.empty()) refuse_checkpoint(options.model);
  std::optional<AdapterLayout> layout;
  if (options.layout_given) layout = options.adapter_layout;
  export_state({options.from_state, options.model, options.out, layout, options.follow_links,
                options.model_name},
               console);
}

ExitCode run_export(const Options& options) {
  // Of a run, now that its base is known.
  if (const std::string problem = out_in_input(options); !problem.empty()) {
    throw usage_error(problem);
  }
  export_result(options);
  if (options.json) print_json(JsonObject{{"out", options.out}});
  return ExitCode::done;
}

}  // namespace hearth
