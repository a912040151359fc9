// hearth train: fine-tunes, or goes on from saved state.
#include "commands/commands.h"
#include "train/settled_options.h"
#include "train/trainer.h"

namespace hearth {

ExitCode run_train(const Options& options) {
  Console console(console_settings(options));
  TrainConfig config = options;
  settle_options(config);
  return train(config, console);
}

}  // namespace hearth
