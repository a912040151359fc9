// A configuration file: one YAML map of option names to values or lists of values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hearth {

struct ConfigEntry {
  std::string key;                  // as written
  std::vector<std::string> values;  // texts; empty for null
  bool is_null = false;             // keep the default
  int line = 0;                     // from 1
  bool is_list = false;             // written as a list, even of one value
  bool has_null = false;            // a list with a null in it
  bool in_section = false;          // of a section of unsloth's files (foreign/sections.h)

  /// The value if it is a map, or the maps if it is a list of maps; `values` is then empty. Only
  /// keys of other trainers take maps. Keeps one more level of maps inside these; sets only
  /// `nested` for anything deeper.
  std::vector<std::vector<ConfigEntry>> maps = {};
  bool nested = false;  // the value has lists or maps that are not in `values` or `maps`
};

/// Parses the text of a configuration; touches no files, so a fuzz target can call it. `source`
/// names the file. Input errors name FILE:LINE: bad YAML, a tag (!name), a duplicate key in a map,
/// a second document, more than 16 levels. Supports anchors, aliases and merge keys (`<<`); with
/// aliases expanded, the file may have 16 times its bytes plus 64 KiB.
std::vector<ConfigEntry> parse_config_yaml(std::string_view text, const std::string& source);

/// Reads a regular file of at most 128 KiB.
std::vector<ConfigEntry> read_config_file(const std::string& path);

}  // namespace hearth
