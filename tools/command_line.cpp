#include "tools/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/file_ops.h"
#include "tools/config_file.h"
#include "tools/numbers.h"
#include "tools/suggest.h"

namespace hearth {
namespace {

/// Texts given to one spelling of an option in one place.
struct Given {
  const Option* option = nullptr;
  std::string where;  // "--lr", "run.yaml:3: lr"
  std::vector<std::string> texts;
};

constexpr size_t kMostTold = 100;
constexpr size_t kMostQuoted = 200;  // characters of input; quoted() cuts there

/// All that is wrong, told at once.
class Problems {
 public:
  void add(const std::string& problem) { list_.push_back(problem); }
  bool empty() const { return list_.empty(); }
  void raise() const {
    if (list_.empty()) return;
    std::string text = list_.size() == 1 ? "" : std::to_string(list_.size()) + " problems: ";
    const size_t told = std::min(list_.size(), kMostTold);
    for (size_t i = 0; i < told; ++i) text += (i == 0 ? "" : "; ") + list_[i];
    if (told < list_.size()) text += "; and " + std::to_string(list_.size() - told) + " more";
    throw usage_error(text);
  }

 private:
  std::vector<std::string> list_;
};

std::string underscored(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// The option of `command` whose name or alias is nearest, as "; the nearest is --lr".
std::string suggestion(Command command, std::string_view name, const std::string& dashes) {
  std::vector<std::string> candidates;
  for (const Option& option : option_table()) {
    if (!option.commands.contains(command)) continue;
    candidates.push_back(option.name);
    candidates.insert(candidates.end(), option.aliases.begin(), option.aliases.end());
  }
  const std::string nearest = nearest_name(with_hyphens(name), candidates);
  if (nearest.empty()) return "; see 'hearth " + entry_of(command).name + " --help'";
  return "; the nearest is " + dashes + find_option(nearest)->name;
}

/// What to say about a name that the command does not take.
std::string refusal(Command command, std::string_view name, const std::string& dashes) {
  if (find_later_option(name) || is_later_for(command, with_hyphens(name))) {
    return "not in this version";
  }
  const std::string word = dashes.empty() ? "unknown key" : "unknown option";
  if (find_option(name)) {
    return word + " for '" + entry_of(command).name + "'" + suggestion(command, name, dashes);
  }
  return word + suggestion(command, name, dashes);
}

/// The arguments as CLI11 splits them.
struct Split {
  std::vector<Given> given;
  std::vector<std::string> operands;
  std::vector<std::string> unknown;  // names, with their dashes
};

Split split_arguments(Command command, std::vector<std::string> arguments, Problems& problems) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  struct Registered {
    const Option* option;
    std::string spelling;
    CLI::Option* parsed;
  };
  std::vector<Registered> registered;
  const auto add = [&](const std::string& spelling, bool flag) {
    std::string names = "--" + spelling;
    if (underscored(spelling) != spelling) names += ",--" + underscored(spelling);
    if (flag) return app.add_flag(names)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    return app.add_option(names)->expected(1)->allow_extra_args(false)->multi_option_policy(
        CLI::MultiOptionPolicy::TakeAll);
  };
  for (const Option& option : option_table()) {
    if (!option.commands.contains(command)) continue;
    const bool flag = option.value.kind == OptionKind::flag;
    registered.push_back({&option, option.name, add(option.name, flag)});
    for (const std::string& alias : option.aliases) {
      registered.push_back({&option, alias, add(alias, flag)});
    }
  }
  // Known, so that their values are not taken for operands; refused below.
  for (const LaterOption& later : later_options()) {
    registered.push_back({nullptr, later.name, add(later.name, later.flag)});
    for (const std::string& alias : later.aliases) {
      registered.push_back({nullptr, alias, add(alias, later.flag)});
    }
  }

  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& e) {
    throw usage_error(e.what());
  }

  Split split;
  for (const Registered& r : registered) {
    if (r.parsed->empty()) continue;
    if (r.option) {
      split.given.push_back({r.option, "--" + r.spelling, r.parsed->results()});
    } else {
      problems.add("--" + r.spelling + ": not in this version");
    }
  }
  for (const std::string& extra : app.remaining()) {
    if (extra.size() > 1 && extra[0] == '-' && extra != "--") {
      split.unknown.push_back(extra.substr(0, extra.find('=')));
    } else if (extra != "--") {
      split.operands.push_back(extra);
    }
  }
  return split;
}

std::vector<Given> read_given(Command command, const std::string& path, Problems& problems) {
  std::vector<Given> given;
  for (const ConfigEntry& entry : read_config_file(path)) {
    const std::string key = entry.key.size() > kMostQuoted ? quoted(entry.key) : entry.key;
    const std::string where = path + ":" + std::to_string(entry.line) + ": " + key;
    const Option* option = find_option(entry.key);
    if (!option || !option->commands.contains(command)) {
      problems.add(where + ": " + refusal(command, entry.key, ""));
    } else if (!entry.is_null) {
      given.push_back({option, where, entry.values});
    }
  }
  return given;
}

/// One place: an option may be spelled in one way, and a single value given once.
void check_spellings(const std::vector<Given>& given, Problems& problems) {
  std::map<const Option*, const Given*> first;
  for (const Given& g : given) {
    const auto [it, fresh] = first.emplace(g.option, &g);
    if (!fresh) {
      problems.add(it->second->where + " and " + g.where + " are the same option: give one");
    }
  }
}

void apply(const std::vector<Given>& given, Options& options, Problems& problems) {
  for (const Given& g : given) {
    if (const auto problem = g.option->value.set(options, g.texts)) {
      problems.add(g.where + ": " + *problem);
    }
  }
}

bool is_missing(const std::string& name, const Options& options) {
  const std::string value = find_option(name)->value.get(options);
  return value == "null" || value == "[]";
}

/// What no single option shows.
void check_together(const CommandEntry& entry, Options& options, Problems& problems) {
  for (const std::string& name : entry.required) {
    if (is_missing(name, options)) problems.add("--" + name + " is missing");
  }
  if (entry.command == Command::generate &&
      options.prompt.empty() == options.messages_file.empty()) {
    problems.add("expected one of --prompt and --messages");
  }
  if (!entry.operand.empty() && entry.operand[0] != '[' && options.operand.empty()) {
    problems.add("expected a directory: hearth " + entry.name + " " + entry.operand);
  }
  for (const std::string& file : options.data) {
    const size_t colon = file.rfind(':');
    if (colon != std::string::npos && parse_number(file.substr(colon + 1)) &&
        file_info(file).kind == FileKind::none) {
      problems.add("--data " + quoted(file) + ": weights (FILE:weight) are not in this version");
    }
  }
  for (std::string& name : options.allow_change) {
    const Option* option = find_option(name);
    if (option && option->commands.contains(Command::train)) {
      name = option->name;
    } else {
      problems.add("--allow-change: " + quoted(name) + " is no option" +
                   suggestion(Command::train, name, ""));
    }
  }
}

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& arguments) {
  CommandLine line;
  const auto asks_help = [](const std::string& a) { return a == "--help" || a == "-h"; };
  if (arguments.empty()) throw usage_error("expected a command; see 'hearth --help'");
  const std::string& name = arguments[0];
  if (asks_help(name) || name == "--version") {
    line.action = name == "--version" ? CommandLine::Action::version : CommandLine::Action::help;
    return line;
  }
  std::vector<std::string> names;
  for (const CommandEntry& entry : command_table()) {
    names.push_back(entry.name);
    if (entry.name == name) line.command = entry.command;
  }
  if (!line.command) {
    if (is_later_command(name)) throw usage_error("'" + name + "' is not in this version");
    const std::string nearest = nearest_name(name, names);
    throw usage_error("unknown command " + quoted(name) +
                      (nearest.empty() ? "; see 'hearth --help'" : "; the nearest is " + nearest));
  }
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (std::any_of(rest.begin(), rest.end(), asks_help)) {
    line.action = CommandLine::Action::help;
    return line;
  }

  const Command command = *line.command;
  const CommandEntry& entry = entry_of(command);
  Problems problems;
  Split split = split_arguments(command, rest, problems);
  for (const std::string& unknown : split.unknown) {
    const size_t dashes = std::min(unknown.find_first_not_of('-'), unknown.size());
    problems.add(unknown + ": " + refusal(command, unknown.substr(dashes), "--"));
  }
  // What follows an unknown option is probably its value, and told with it.
  if (split.unknown.empty()) {
    for (size_t i = entry.operand.empty() ? 0 : 1; i < split.operands.size(); ++i) {
      problems.add("unexpected argument " + quoted(split.operands[i]));
    }
  }

  Options& options = line.options;
  if (!entry.operand.empty() && !split.operands.empty()) options.operand = split.operands[0];
  const bool takes_file = entry.operand == "[CONFIG.yaml]" && !options.operand.empty();
  if (takes_file &&
      (split.unknown.empty() || file_info(options.operand).kind == FileKind::regular)) {
    const std::vector<Given> file = read_given(command, options.operand, problems);
    check_spellings(file, problems);
    apply(file, options, problems);
  }
  check_spellings(split.given, problems);
  apply(split.given, options, problems);
  check_together(entry, options, problems);
  problems.raise();
  if (command == Command::train || command == Command::plan) {
    options.recorded = recorded_options(options);
  }
  return line;
}

}  // namespace hearth
