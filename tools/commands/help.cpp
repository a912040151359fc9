#include "commands/help.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "foreign/keys.h"
#include "options/command_table.h"
#include "options/option_lookup.h"
#include "options/option_table.h"

namespace hearth {
namespace {

constexpr size_t kWidth = 100;
constexpr size_t kIndent = 28;

/// `text` wrapped at words, each line after the first indented.
std::string wrapped(const std::string& text, size_t indent) {
  std::string result;
  size_t column = indent;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (column > indent && column + 1 + word.size() > kWidth) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
    at = end + 1;
  }
  return result;
}

std::string joined(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

/// "[tokens; 1 to 1048576; default 2048]".
std::string facts_of(const Option& option, const CommandEntry& entry, const HelpFor& help) {
  std::vector<std::string> facts;
  // A command with a placeholder of its own takes another form of value.
  if (help.placeholder == option.value.placeholder && !option.unit.empty()) {
    facts.push_back(option.unit);
  }
  if (!option.value.range.empty()) facts.push_back(option.value.range);
  const auto& required = entry.required;
  if (std::find(required.begin(), required.end(), option.name) != required.end()) {
    facts.push_back("required");
  } else if (!help.default_text.empty()) {
    facts.push_back("default " + help.default_text);
  }
  return facts.empty() ? "" : " [" + joined(facts, "; ") + "]";
}

std::string option_help(const Option& option, const CommandEntry& entry) {
  const HelpFor help = option.help_of(entry.command);
  std::string head = "  --" + option.name;
  if (!help.placeholder.empty()) head += " " + help.placeholder;
  head += head.size() < kIndent ? std::string(kIndent - head.size(), ' ')
                                : "\n" + std::string(kIndent, ' ');
  return head + wrapped(help.help + facts_of(option, entry, help), kIndent) + "\n";
}

/// The options that most runs need, in the order of the help of train and plan.
constexpr std::array kFirst{"model",  "data",    "out",        "method",    "lr",
                            "epochs", "seq-len", "grad-accum", "eval-data", "cpu-memory"};

bool comes_first(const Option& option, Command command) {
  const bool trains = command == Command::train || command == Command::plan;
  return trains && std::find(kFirst.begin(), kFirst.end(), option.name) != kFirst.end();
}

std::string underscored(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace

std::string aliases_help() {
  std::string text =
      "Other names of options, from TRL, axolotl, LLaMA-Factory and unsloth. They may be flags or "
      "keys "
      "of a\nconfiguration; hyphens and underscores are the same. Keys without an option here are "
      "translated or\nrefused with advice; 'hearth migrate FILE' shows what a file means "
      "(docs/configuration.md).\n\n";
  for (const Option& option : option_table()) {
    std::vector<std::string> names;
    for (const std::string& alias : option.aliases) names.push_back(underscored(alias));
    for (const ForeignKey& key : foreign_keys()) {
      const bool listed =
          std::find(names.begin(), names.end(), underscored(key.name)) != names.end();
      if (key.option == option.name && key.name != option.name && !listed) {
        names.push_back(underscored(key.name));
      }
    }
    if (names.empty() || !option.commands.contains(Command::train)) continue;
    std::string head = "  --" + option.name;
    head.resize(std::max(head.size() + 2, kIndent), ' ');
    text += head + wrapped(joined(names, ", "), kIndent) + "\n";
  }
  return text;
}

std::string program_help() {
  std::string text =
      "hearth fine-tunes mixture-of-experts language models.\n\n"
      "Usage: hearth COMMAND [OPTIONS]\n\n";
  for (const CommandEntry& entry : command_table()) {
    std::string head = "  " + entry.name + (entry.operand.empty() ? "" : " " + entry.operand);
    head.resize(std::max(head.size() + 2, kIndent), ' ');
    text += head + wrapped(entry.summary, kIndent) + "\n";
  }
  return text +
         "\n  hearth COMMAND --help     show its options (or: hearth help COMMAND)\n"
         "  hearth help aliases       names of options in other trainers\n"
         "  hearth --version          show build, machine and libraries\n";
}

std::string command_help(Command command) {
  const CommandEntry& entry = entry_of(command);
  std::string text = "hearth " + entry.name + ": " + entry.summary + "\n\nUsage: hearth " +
                     entry.name + (entry.operand.empty() ? "" : " " + entry.operand) +
                     " [OPTIONS]\n";
  if (entry.operand == "[CONFIG.yaml]") {
    text +=
        "\n" +
        wrapped(
            "CONFIG.yaml holds options as 'name: value'. A flag beats the file, the file beats the "
            "default. Underscores may stand for hyphens. Files of TRL, axolotl, LLaMA-Factory and "
            "unsloth are read, too ('hearth help aliases', 'hearth migrate').",
            0) +
        "\n";
  }
  std::string first;
  for (const char* name : kFirst) {
    const Option& option = *find_option(name, command);
    if (comes_first(option, command)) first += option_help(option, entry);
  }
  if (!first.empty()) text += "\nthe options of most runs\n" + first;
  std::string group;
  std::vector<std::string> idle;
  for (const Option& option : option_table()) {
    if (option.hidden || !option.taken_by(command) || comes_first(option, command)) continue;
    if (option.idle.contains(command)) {
      idle.push_back("--" + option.name);
      continue;
    }
    if (option.group != group) text += "\n" + (group = option.group) + "\n";
    text += option_help(option, entry);
  }
  if (!idle.empty()) {
    text +=
        "\naccepted as by train, without effect here\n    " + wrapped(joined(idle, " "), 4) + "\n";
  }
  return text;
}

}  // namespace hearth
