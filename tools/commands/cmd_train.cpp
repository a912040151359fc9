// hearth train: fine-tunes, or goes on from saved state.
#include "commands/commands.h"
#include "commands/output.h"
#include "train/launched_run.h"
#include "train/run_summary.h"
#include "train/settled_options.h"
#include "train/trainer.h"

namespace hearth {

ExitCode run_train(const Options& options, LaunchedRanks* launched) {
  TrainConfig config = options;
  if (launched != nullptr) {
    if (const auto ending = launched->compare_start(config)) return say(*ending);
  }
  if (launched == nullptr) settle_options(config);
  ExitCode code = ExitCode::done;
  {
    Console console(console_settings(options));
    code =
        launched != nullptr ? train_launched(config, console, *launched) : train(config, console);
  }
  if (launched != nullptr && !launched->leads()) return code;
  if (options.json && code != ExitCode::stopped) print_json(run_summary(config));
  return code;
}

}  // namespace hearth
