// hearth train: fine-tunes, or goes on from saved state.
#include "tools/commands.h"
#include "train/trainer.h"

namespace hearth {

ExitCode run_train(const Options& options) {
  Console console(console_settings(options));
  return train(options, console);
}

}  // namespace hearth
