// Configurations of other trainers, and what is told about them.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "commands/command_line.h"
#include "commands/migrated_yaml.h"
#include "options/problems.h"
#include "support/temporary_directory.h"

namespace hearth::test {

/// `hearth migrate` prints a native file that gives the same options as the one it was made from.
inline void check_migrated(const std::string& file, const std::string& native,
                           const CommandLine& from_file) {
  const std::string yaml = migrated_yaml(parse_command_line({"migrate", file}));
  std::ofstream(native, std::ios::binary) << yaml;
  INFO(yaml);
  const CommandLine line = parse_command_line({"train", native});
  CHECK(line.notes.empty());  // of no other trainer, and every key is known
  const Options &a = from_file.options, &b = line.options;
  REQUIRE(a.recorded.size() == b.recorded.size());
  for (size_t i = 0; i < a.recorded.size(); ++i) {
    CHECK(a.recorded[i].name + ": " + a.recorded[i].value ==
          b.recorded[i].name + ": " + b.recorded[i].value);
  }
  // What still depends on the data or the method.
  CHECK(a.packing_by_data == b.packing_by_data);
  CHECK(a.epochs_by_data == b.epochs_by_data);
  CHECK(a.lr_given == b.lr_given);
}

/// Every file that is read here is also migrated, unless flags are given beside it.
inline CommandLine parsed_yaml(const std::string& yaml, const std::vector<std::string>& more = {}) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "c.yaml", std::ios::binary) << yaml;
  std::vector<std::string> words{"train", directory / "c.yaml"};
  words.insert(words.end(), more.begin(), more.end());
  CommandLine line = parse_command_line(words);
  if (more.empty()) check_migrated(directory / "c.yaml", directory / "native.yaml", line);
  return line;
}

inline std::vector<std::string> problems_of(const std::string& yaml) {
  try {
    parsed_yaml(yaml);
  } catch (const ConfigurationError& e) {
    return e.problems();
  } catch (const Error& e) {
    return {e.what()};
  }
  return {};
}

inline bool one_says(const std::vector<std::string>& lines, const std::string& part) {
  for (const std::string& line : lines) {
    if (line.find(part) != std::string::npos) return true;
  }
  return false;
}

}  // namespace hearth::test
