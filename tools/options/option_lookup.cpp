// The table of commands, and what is asked of both tables.
#include <algorithm>

#include "base/error.h"
#include "options/option_table.h"

namespace hearth {

using enum Command;

const std::vector<CommandEntry>& command_table() {
  static const std::vector<CommandEntry> table{
      {train,
       "train",
       "[CONFIG.yaml]",
       "fine-tune a model; resumes by itself if --out holds saved state of the same run",
       {"model", "data", "out"}},
      {eval,
       "eval",
       "",
       "print mean cross-entropy per trained token, perplexity and expert load",
       {"model", "data"}},
      {generate,
       "generate",
       "",
       "continue a prompt or answer a chat",
       {"model"},
       {"prompt", "messages"}},
      {plan,
       "plan",
       "[CONFIG.yaml]",
       "print what train would do: schedule, memory, time; takes the options of train, needs "
       "neither "
       "weights nor data",
       {"model"}},
      {inspect, "inspect", "DIR", "show a checkpoint, adapter, saved state or run directory", {}},
      {tokenize,
       "tokenize",
       "[FILE]",
       "print the token ids of each line of a text (default: stdin), or of the rows of --data",
       {"model"}},
      {export_,
       "export",
       "",
       "merge an adapter into its base, or convert saved state to a checkpoint or an adapter; "
       "keeps "
       "the base's tensor names, types and files",
       {"out"},
       {"adapter", "from-state"}},
      {verify,
       "verify",
       "DIR",
       "check the content of saved state, a run directory, a checkpoint or an adapter",
       {}},
      {init, "init", "", "make a random checkpoint from a config.json", {"config", "out"}},
      {report,
       "report",
       "RUN_DIR",
       "write one HTML page of a run: curves, throughput, expert load, memory, events, options",
       {}},
  };
  return table;
}

const CommandEntry& entry_of(Command command) {
  for (const CommandEntry& entry : command_table()) {
    if (entry.command == command) return entry;
  }
  HEARTH_CHECK(false, "a command without an entry");
}

std::string with_hyphens(std::string_view name) {
  std::string result(name);
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

const Option* find_option(std::string_view spelling) {
  const std::string name = with_hyphens(spelling);
  for (const Option& option : option_table()) {
    const auto& aliases = option.aliases;
    if (option.name == name || std::find(aliases.begin(), aliases.end(), name) != aliases.end()) {
      return &option;
    }
  }
  return nullptr;
}

HelpFor Option::help_of(Command command) const {
  HelpFor shown{{}, help, default_text, value.placeholder};
  for (const HelpFor& own : help_for) {
    if (!own.commands.contains(command)) continue;
    shown.help = own.help;
    if (!own.default_text.empty()) shown.default_text = own.default_text;
    if (!own.placeholder.empty()) shown.placeholder = own.placeholder;
  }
  if (shown.default_text.empty()) {
    const std::string own = value.get(Options{});
    if (own != "null" && own != "[]") shown.default_text = own;
  }
  return shown;
}

std::vector<TrainConfig::Recorded> recorded_options(const Options& options) {
  std::vector<TrainConfig::Recorded> recorded;
  for (const Option& option : option_table()) {
    if (!option.commands.contains(train)) continue;
    const bool may_change = option.may_change || option.name == "out";  // a moved directory
    const std::string value = option.value.get(options);
    recorded.push_back({option.name, value, may_change, value == option.value.get(Options()),
                        option.name == "allow-change"});
  }
  return recorded;
}

}  // namespace hearth
