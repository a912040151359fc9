#include "commands/command_line.h"

#include <algorithm>

#include "base/error.h"
#include "base/file_ops.h"
#include "commands/foreign_file.h"
#include "commands/given.h"
#include "commands/option_checks.h"
#include "commands/target_problems.h"
#include "options/command_table.h"
#include "options/later.h"
#include "options/option_lookup.h"
#include "options/suggest.h"

namespace hearth {
namespace {

constexpr const char* kRepeatData =
    ": expected a configuration (.yaml); name files of rows behind --data (--data a.jsonl b.jsonl)";

/// A file of rows where a command takes a configuration: the shell split `--data a.jsonl b.jsonl`.
bool is_data_file(const std::string& name) {
  const std::string file = name.substr(0, name.rfind(':'));  // without a weight
  const auto endings = {".jsonl",   ".ndjson", ".txt", ".csv", ".tsv",
                        ".parquet", ".arrow",  ".gz",  ".zst", ".xz"};
  return std::any_of(endings.begin(), endings.end(),
                     [&](const char* ending) { return file.ends_with(ending); });
}

/// An array of JSON is a file of rows; an object is a configuration.
bool holds_json_array(const std::string& path) {
  if (!path.ends_with(".json") || file_info(path).kind != FileKind::regular) return false;
  const InputFile file(path);
  std::string head(std::min<uint64_t>(file.size(), 4096), ' ');
  file.read(head.data(), head.size(), 0);
  const size_t first = head.find_first_not_of(" \t\r\n");
  return first != std::string::npos && head[first] == '[';
}

/// Looks into the file that the word may name.
bool holds_rows(const std::string& word) {
  return word.find_first_of("*?") != std::string::npos ||
         file_info(word).kind == FileKind::directory || is_data_file(word) ||
         holds_json_array(word);
}

/// `--data a.jsonl b.jsonl`, as a shell writes it for `--data *.jsonl`: names --data for each file.
/// A configuration may follow the files, or stand before.
std::vector<std::string> with_each_file_named(std::vector<std::string> words) {
  std::vector<std::string> named;
  std::string option;  // whose files may follow
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool is_flag = word.starts_with("--") && word.size() > 2;
    const bool configuration = word.ends_with(".yaml") || word.ends_with(".yml");
    if (is_flag) {
      option.clear();
      const size_t equals = word.find('=');
      const std::string name = with_hyphens(word.substr(2, equals - 2));
      const Option* known = find_option(name);
      const bool takes_files = known && (known->name == "data" || known->name == "eval-data");
      if (takes_files) option = word.substr(0, equals);
      named.push_back(word);
      if (takes_files && equals == std::string::npos && i + 1 < words.size()) {
        named.push_back(words[++i]);
      }
      continue;
    }
    if (!option.empty() && !configuration && holds_rows(word)) named.push_back(option);
    named.push_back(word);
  }
  return named;
}

void apply(const std::vector<Given>& given, Options& options, Problems& problems) {
  for (const Given& g : given) {
    if (const auto problem = g.option->value.set(options, g.texts)) {
      problems.add(g.where + ": " + *problem);
    }
  }
  check_contradictions(given, options, problems);
}

/// Everything behind the command's name.
void parse_options(const CommandEntry& entry, const std::vector<std::string>& words,
                   CommandLine& line) {
  const Command command = entry.command;
  Problems problems;
  const Arguments split = split_arguments(command, words, problems);
  for (const std::string& unknown : split.unknown) {
    const size_t dashes = std::min(unknown.find_first_not_of('-'), unknown.size());
    problems.add(unknown + ": " + refusal(command, unknown.substr(dashes), "--"));
  }
  // What follows an unknown option is probably its value, and told with it.
  if (split.unknown.empty()) {
    const bool has_number =
        command == Command::simulate && !split.operands.empty() && split.operands[0] == "figure";
    for (size_t i = entry.operand.empty() ? 0
                    : has_number          ? 2
                                          : 1;
         i < split.operands.size(); ++i) {
      problems.add("unexpected argument " + quoted(split.operands[i]) +
                   (is_data_file(split.operands[i]) ? kRepeatData
                    : command == Command::report ? "; --compare RUN RUN puts two runs on one page"
                                                 : ""));
    }
  }

  Options& options = line.options;
  if (!entry.operand.empty() && !split.operands.empty()) options.operand = split.operands[0];
  if (command == Command::simulate) {
    if (split.operands.size() > 1) options.figure = split.operands[1];
    if (const auto problem = study_problem(options)) throw usage_error(*problem);
  }
  const bool migrates = command == Command::migrate;
  bool takes_file = (migrates || entry.operand == "[CONFIG.yaml]") && !options.operand.empty();
  if (takes_file && is_data_file(options.operand)) {
    problems.add("unexpected argument " + quoted(options.operand) + kRepeatData);
    takes_file = false;
  }
  GivenPlace file;
  if (takes_file &&
      (split.unknown.empty() || file_info(options.operand).kind == FileKind::regular)) {
    file = look_up(migrates ? Command::train : command, named_in_file(options.operand), "",
                   options.operand, problems);
  }
  const GivenPlace flags = look_up(command, split.named, "--", "", problems);
  if (file.trainer != Trainer::none) complete_foreign_file(file, flags.given, options.operand);
  for (const GivenPlace* place : {static_cast<const GivenPlace*>(&file), &flags}) {
    apply(place->given, options, problems);
    line.notes.insert(line.notes.end(), place->notes.begin(), place->notes.end());
    line.details.insert(line.details.end(), place->details.begin(), place->details.end());
    for (const Given& given : place->given) {
      const bool by_key = place == &file && !given.key.empty();
      line.places[given.option->name] = {given.where, given.texts, by_key};
    }
  }
  // A file is migrated if train would run it.
  const bool reads = !migrates || takes_file;
  check_together(migrates && reads ? entry_of(Command::train) : entry, flags.given, line.places,
                 options, problems);
  if (!problems.empty()) {  // else the command tells
    for (const std::string& problem : target_problems(line)) problems.add(problem);
  }
  problems.raise();
  if (command == Command::train || command == Command::plan || migrates) {
    options.recorded = recorded_options(options);
  }
}

/// `hearth help`, `hearth help aliases`, `hearth help COMMAND`.
CommandLine parse_help(const std::vector<std::string>& arguments) {
  if (arguments.size() > 2) throw usage_error("unexpected argument " + quoted(arguments[2]));
  CommandLine line;
  line.action = CommandLine::Action::help;
  if (arguments.size() == 1 || arguments[1] == "--help") return line;
  if (arguments[1] == "aliases") {
    line.action = CommandLine::Action::aliases;
    return line;
  }
  return parse_command_line({arguments[1], "--help"});
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
  if (name == "help") return parse_help(arguments);
  std::vector<std::string> names;
  for (const CommandEntry& entry : command_table()) {
    names.push_back(entry.name);
    if (entry.name == name) line.command = entry.command;
  }
  if (!line.command) {
    const std::string nearest = nearest_name(name, names);
    throw usage_error("unknown command " + quoted(name) +
                      (nearest.empty() ? "; see 'hearth --help'" : "; the nearest is " + nearest));
  }
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (std::any_of(rest.begin(), rest.end(), asks_help)) {
    line.action = CommandLine::Action::help;
    return line;
  }

  parse_options(entry_of(*line.command), with_each_file_named(rest), line);
  return line;
}

}  // namespace hearth
