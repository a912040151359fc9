// hearth export: saved state as a checkpoint.
#include "tools/commands.h"
#include "train/export.h"

namespace hearth {

ExitCode run_export(const Options& options) {
  Console console(console_settings(options));
  export_state({options.from_state, options.model, options.out, options.follow_links}, console);
  return ExitCode::done;
}

}  // namespace hearth
