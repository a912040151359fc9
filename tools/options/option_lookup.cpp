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
       "fine-tune; resumes by itself when --out holds saved state of the same run",
       {"model", "data", "out"}},
      {eval,
       "eval",
       "",
       "mean cross-entropy a trained token, perplexity, expert load",
       {"model", "data"}},
      {generate, "generate", "", "text from a prompt or a chat", {"model"}},
      {plan,
       "plan",
       "[CONFIG.yaml]",
       "what train would do: schedule, memory, time; same options; needs neither weights nor data",
       {"model"}},
      {inspect, "inspect", "DIR", "show a checkpoint, adapter, saved state or run directory", {}},
      {tokenize, "tokenize", "[FILE]", "ids of each line of a text (default: stdin)", {"model"}},
      {export_,
       "export",
       "",
       "merges an adapter into its base, or makes saved state a checkpoint or an adapter; in the "
       "base's names, types and shards",
       {"out"}},
      {verify,
       "verify",
       "DIR",
       "check saved state, a run directory, a checkpoint or an adapter",
       {}},
      {init, "init", "", "a random checkpoint from a config.json", {"config", "out"}},
      {report,
       "report",
       "RUN_DIR",
       "one HTML page of a run: curves, throughput, expert load, memory, events, options",
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

std::string default_of(const Option& option) {
  if (!option.default_text.empty()) return option.default_text;
  const std::string value = option.value.get(Options{});
  return value == "null" || value == "[]" ? "" : value;
}

std::vector<TrainConfig::Recorded> recorded_options(const Options& options) {
  std::vector<TrainConfig::Recorded> recorded;
  for (const Option& option : option_table()) {
    if (!option.commands.contains(train)) continue;
    const bool may_change = option.may_change || option.name == "out";  // a moved directory
    const std::string value = option.value.get(options);
    recorded.push_back({option.name, value, may_change, value == option.value.get(Options())});
  }
  return recorded;
}

}  // namespace hearth
