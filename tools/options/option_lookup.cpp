#include "options/option_lookup.h"

#include <algorithm>

namespace hearth {

std::string with_hyphens(std::string_view name) {
  std::string result(name);
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

namespace {

bool has_name(const Option& option, const std::string& name) {
  const auto& aliases = option.aliases;
  return option.name == name || std::find(aliases.begin(), aliases.end(), name) != aliases.end();
}

}  // namespace

const Option* find_option(std::string_view spelling) {
  const std::string name = with_hyphens(spelling);
  for (const Option& option : option_table()) {
    if (has_name(option, name)) return &option;
  }
  return nullptr;
}

const Option* find_option(std::string_view spelling, Command command) {
  const std::string name = with_hyphens(spelling);
  for (const Option& option : option_table()) {
    if (option.taken_by(command) && has_name(option, name)) return &option;
  }
  return find_option(spelling);
}

std::vector<TrainConfig::Recorded> recorded_options(const Options& options) {
  std::vector<TrainConfig::Recorded> recorded;
  for (const Option& option : option_table()) {
    if (!option.commands.contains(Command::train)) continue;
    const bool may_change = option.may_change || option.name == "out";  // a moved directory
    const std::string value = option.value.get(options);
    recorded.push_back({option.name, value, may_change, value == option.value.get(Options()),
                        option.name == "allow-change", option.of_rank});
  }
  return recorded;
}

}  // namespace hearth
