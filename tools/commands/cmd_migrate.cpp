// hearth migrate: the configuration of another trainer, with hearth's names and values.
#include "commands/commands.h"
#include "commands/output.h"
#include "options/option_table.h"

namespace hearth {

// Options that neither the file nor its trainer sets have hearth's defaults, which need no line.
ExitCode run_migrate(const CommandLine& line) {
  std::string yaml = "# from " + line.options.operand + "\n";
  for (const Option& option : option_table()) {
    const auto place = line.places.find(option.name);
    if (place == line.places.end() || place->second.where.starts_with("--")) continue;
    const std::string value = option.value.get(line.options);
    if (value != "null") yaml += option.name + ": " + value + "\n";
  }
  print(yaml);
  return ExitCode::done;
}

}  // namespace hearth
