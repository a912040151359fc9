#include "commands/migrated_yaml.h"

#include "options/option_table.h"

namespace hearth {

// Options that neither the file nor its trainer sets have hearth's defaults, which need no line.
std::string migrated_yaml(const CommandLine& line) {
  std::string yaml = "# from " + line.options.operand + "\n";
  for (const Option& option : option_table()) {
    if (!option.commands.contains(Command::train)) continue;  // another command's of this name
    const auto place = line.places.find(option.name);
    if (place == line.places.end() || place->second.where.starts_with("--")) continue;
    const std::string value = option.value.get(line.options);
    if (value != "null") yaml += option.name + ": " + value + "\n";
  }
  return yaml;
}

}  // namespace hearth
