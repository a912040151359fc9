// hearth train: fine-tunes, or goes on from saved state.
#include "commands/commands.h"
#include "commands/output.h"
#include "train/run_summary.h"
#include "train/settled_options.h"
#include "train/trainer.h"

namespace hearth {

ExitCode run_train(const Options& options) {
  TrainConfig config = options;
  settle_options(config);
  ExitCode code = ExitCode::done;
  {
    Console console(console_settings(options));
    code = train(config, console);
  }
  if (options.json && code != ExitCode::stopped) print_json(run_summary(config));
  return code;
}

}  // namespace hearth
