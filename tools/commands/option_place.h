// Where the user gave an option.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace hearth {

struct OptionPlace {
  std::string where;               // "--lr", "run.yaml:3: lr"; of a trainer's default: its name
  std::vector<std::string> texts;  // as given
  bool in_file = false;            // `where` is a key of the configuration
};

/// By the names of the options that were given.
using OptionPlaces = std::map<std::string, OptionPlace>;

}  // namespace hearth
