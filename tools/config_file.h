// A configuration file: one YAML map of option names to values or lists of values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hearth {

struct ConfigEntry {
  std::string key;                  // as written
  std::vector<std::string> values;  // texts; none for null
  bool is_null = false;             // leaves the default
  int line = 0;                     // from 1
};

/// Pure: the fuzz target calls it. `source` names the file. Input errors name FILE:LINE: bad YAML, a
/// key twice, anything deeper than a list of values, aliases and anchors, a second document.
std::vector<ConfigEntry> parse_config_yaml(std::string_view text, const std::string& source);

/// Reads a regular file of at most 128 KiB.
std::vector<ConfigEntry> read_config_file(const std::string& path);

}  // namespace hearth
