// hearth train: fine-tunes, or goes on from saved state.
#include "commands/commands.h"
#include "setup/template_date.h"
#include "train/trainer.h"

namespace hearth {

ExitCode run_train(const Options& options) {
  Console console(console_settings(options));
  TrainConfig config = options;
  fix_template_date(config);
  return train(config, console);
}

}  // namespace hearth
