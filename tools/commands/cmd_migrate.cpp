// hearth migrate: the configuration of another trainer, with hearth's names and values.
#include "commands/commands.h"
#include "commands/migrated_yaml.h"
#include "commands/output.h"

namespace hearth {

ExitCode run_migrate(const CommandLine& line) {
  print(migrated_yaml(line));
  return ExitCode::done;
}

}  // namespace hearth
