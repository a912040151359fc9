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
  bool is_list = false;             // written as a list, of one value, too

  /// A map as the value, or maps as the items of a list: no option of this program takes them, but
  /// keys of other trainers do. `values` is empty then. Maps in these are kept, too; of what lies
  /// deeper only `nested`.
  std::vector<std::vector<ConfigEntry>> maps = {};
  bool nested = false;  // the value holds lists or maps that are not in `values` and `maps`
};

/// Pure: the fuzz target calls it. `source` names the file. Input errors name FILE:LINE: bad YAML, a
/// key twice in one map, a second document, more than 16 levels. Anchors, aliases and merge keys
/// (`<<`) are read; written out the file may have 16 times its bytes and 64 KiB.
std::vector<ConfigEntry> parse_config_yaml(std::string_view text, const std::string& source);

/// Reads a regular file of at most 128 KiB.
std::vector<ConfigEntry> read_config_file(const std::string& path);

}  // namespace hearth
