// The text of --help, from the option table.
#include <algorithm>

#include "commands/command_line.h"

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

std::string facts_of(const Option& option, bool required, bool idle) {
  std::string facts;
  const auto add = [&](const std::string& fact) { facts += (facts.empty() ? "" : "; ") + fact; };
  if (!option.unit.empty()) add(option.unit);
  if (!option.value.range.empty()) add(option.value.range);
  const std::string value = default_of(option);
  if (required) {
    add("required");
  } else if (!value.empty()) {
    add("default " + value);
  }
  std::string aliases;
  for (const std::string& alias : option.aliases) {
    std::string spelled = alias;
    std::replace(spelled.begin(), spelled.end(), '-', '_');
    aliases += (aliases.empty() ? "" : ", ") + spelled;
  }
  if (!aliases.empty()) add("also: " + aliases);
  if (idle) add("taken, without effect here");
  return facts.empty() ? "" : " [" + facts + "]";
}

std::string option_help(const Option& option, bool required, bool idle) {
  std::string head = "  --" + option.name;
  if (!option.value.placeholder.empty()) head += " " + option.value.placeholder;
  head += head.size() < kIndent ? std::string(kIndent - head.size(), ' ')
                                : "\n" + std::string(kIndent, ' ');
  return head + wrapped(option.help + facts_of(option, required, idle), kIndent) + "\n";
}

}  // namespace

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
         "\n  hearth COMMAND --help     its options\n"
         "  hearth --version          build, machine and libraries\n";
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
            "CONFIG.yaml holds options as 'name: value'; a flag beats the file, the "
            "file beats the default. Underscores may stand for hyphens, and the usual keys of TRL, "
            "axolotl and LLaMA-Factory are understood (docs/configuration.md).",
            0) +
        "\n";
  }
  std::string group;
  for (const Option& option : option_table()) {
    if (!option.taken_by(command)) continue;
    if (option.group != group) text += "\n" + (group = option.group) + "\n";
    const bool required = std::find(entry.required.begin(), entry.required.end(), option.name) !=
                          entry.required.end();
    text += option_help(option, required, option.idle.contains(command));
  }
  return text;
}

}  // namespace hearth
