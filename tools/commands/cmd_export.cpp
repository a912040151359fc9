// hearth export: saved state as a checkpoint or an adapter, a model with its adapter merged, or
// a GGUF file.
#include <optional>

#include "commands/commands.h"
#include "commands/output.h"
#include "train/export.h"
#include "train/export_gguf.h"

namespace hearth {

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
  std::optional<AdapterLayout> layout;
  if (options.layout_given) layout = options.adapter_layout;
  export_state({options.from_state, options.model, options.out, layout, options.follow_links,
                options.model_name},
               console);
}

ExitCode run_export(const Options& options) {
  export_result(options);
  if (options.json) print_json(JsonObject{{"out", options.out}});
  return ExitCode::done;
}

}  // namespace hearth
