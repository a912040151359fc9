// Options as the command line gives them.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "commands/command_line.h"
#include "support/temporary_directory.h"

namespace hearth::test {

/// The flags that train needs, unless the option under test is one of them.
inline std::vector<std::string> train_with(const std::vector<std::string>& more,
                                           const std::string& except = "") {
  std::vector<std::string> arguments{"train"};
  for (const std::string name : {"model", "data", "out"}) {
    if (name != except) arguments.insert(arguments.end(), {"--" + name, name});
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// The path of a configuration file with this text.
inline std::string written(const TemporaryDirectory& directory, const std::string& text) {
  const std::string path = directory / "config.yaml";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

inline Options parsed(const std::vector<std::string>& arguments) {
  return parse_command_line(arguments).options;
}

}  // namespace hearth::test
