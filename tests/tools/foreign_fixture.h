// Configurations of other trainers, and what is told about them.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "commands/command_line.h"
#include "options/problems.h"
#include "support/temporary_directory.h"

namespace hearth::test {

inline CommandLine parsed_yaml(const std::string& yaml, const std::vector<std::string>& more = {}) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "c.yaml", std::ios::binary) << yaml;
  std::vector<std::string> words{"train", directory / "c.yaml"};
  words.insert(words.end(), more.begin(), more.end());
  return parse_command_line(words);
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
