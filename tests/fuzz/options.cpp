// A command line, one argument a line, and behind a line "----" the configuration file that the
// argument CONFIG stands for. Refused with a usage or an input error of one line a problem, or
// resolved to options which, recorded as a configuration, resolve to the same ones.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "base/error.h"
#include "base/file_ops.h"
#include "commands/command_line.h"
#include "options/command_table.h"
#include "record/run_directory.h"
#include "support/bounded.h"
#include "support/json_mutator.h"
#include "support/temporary_directory.h"

namespace {

using namespace hearth;

constexpr std::string_view kCut = "\n----\n";

void check(bool condition) {
  if (!condition) std::abort();
}

const test::TemporaryDirectory& directory() {
  static const test::TemporaryDirectory made;
  return made;
}

std::string write_config(const char* name, std::string_view text) {
  const std::string path = directory() / name;
  std::filesystem::remove(path);
  OutputFile file(path);
  file.write(text.data(), text.size());
  return path;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at <= text.size() && lines.size() < 64;) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

void check_recorded(const CommandLine& line) {
  const std::string path = write_config("recorded.yaml", config_yaml(line.options.recorded));
  const CommandLine again = parse_command_line({entry_of(*line.command).name, path});
  check(again.action == CommandLine::Action::run);
  check(again.options.recorded.size() == line.options.recorded.size());
  for (size_t i = 0; i < line.options.recorded.size(); ++i) {
    check(again.options.recorded[i].name == line.options.recorded[i].name);
    if (line.options.recorded[i].one_start) continue;
    check(again.options.recorded[i].value == line.options.recorded[i].value);
  }
}

// A line taken out, doubled or exchanged, an option of the table put in, or a value of a limit.
std::string change_lines(std::string_view text, uint32_t seed) {
  static const char* const kValues[] = {"0",
                                        "1",
                                        "-1",
                                        "0.5",
                                        "1e-3",
                                        "1e400",
                                        "nan",
                                        "on",
                                        "off",
                                        "true",
                                        "null",
                                        "auto",
                                        "9223372036854775807",
                                        "9223372036854775808",
                                        "18446744073709551616",
                                        "4GiB",
                                        "1e3",
                                        "0x10",
                                        "",
                                        " ",
                                        "a,b",
                                        "[1, 2]",
                                        "{a: 1}",
                                        "~",
                                        "*",
                                        "10%",
                                        "bf16",
                                        "never"};
  std::mt19937 random(seed);
  const auto below = [&](size_t n) { return n == 0 ? 0 : random() % n; };
  const size_t cut = text.find(kCut);
  const bool in_file = cut != text.npos && below(2) == 0;
  std::vector<std::string> lines =
      lines_of(in_file ? text.substr(cut + kCut.size()) : text.substr(0, cut));
  const Option& option = option_table()[below(option_table().size())];
  const std::string value = kValues[below(std::size(kValues))];
  const size_t i = below(lines.size()), j = below(lines.size());
  const auto at = lines.begin() + static_cast<ptrdiff_t>(i);
  switch (below(6)) {
    case 0: lines.erase(at); break;
    case 1: std::swap(lines[i], lines[j]); break;
    case 2: lines.push_back(lines[i]); break;
    case 3: lines[i] = value; break;
    default:
      if (in_file) {
        lines.push_back(option.name + ": " + value);
      } else if (below(2) == 0) {
        lines.push_back("--" + option.name + "=" + value);
      } else {
        lines.push_back("--" + option.name);
        lines.push_back(value);
      }
  }
  std::string joined;
  for (const std::string& line : lines) joined += (joined.empty() ? "" : "\n") + line;
  if (in_file) return std::string(text.substr(0, cut + kCut.size())) + joined;
  return joined + (cut == text.npos ? "" : std::string(text.substr(cut)));
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return test::mutate_input(data, size, most, seed, change_lines);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t cut = text.find(kCut);
  const std::string path =
      write_config("config.yaml", cut == text.npos ? "" : text.substr(cut + kCut.size()));
  std::vector<std::string> arguments = lines_of(text.substr(0, cut));
  for (std::string& argument : arguments) {
    if (argument.find('\0') != std::string::npos) return 0;  // no argument of a program
    if (argument == "CONFIG") argument = path;
  }
  CommandLine line;
  try {
    const test::Bounded bound(size, {.times = 512, .bytes = 4 << 20});
    line = parse_command_line(arguments);
  } catch (const Error& error) {
    check(error.code() == ExitCode::usage || error.code() == ExitCode::input);
    check(*error.what() != '\0');
    return 0;
  }
  if (line.action == CommandLine::Action::run && !line.options.recorded.empty()) {
    check_recorded(line);
  }
  return 0;
}
