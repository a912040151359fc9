// How much memory of a place a run may use, and the option that raises the limit.
#pragma once

#include <cstdint>
#include <string>

namespace hearth {

struct PlaceBudget {
  std::string name;    // "host", "cuda:0", "virtual:0"
  uint64_t bytes = 0;  // for the host: limit of the process
  std::string remedy;  // the option that raises it, with {} for the size: "--cpu-memory {}"

  /// The option with a size in MiB: "--cpu-memory 512Mi".
  std::string raised_to(const std::string& mebibytes) const {
    std::string text = remedy;
    const size_t at = text.find("{}");
    return at == std::string::npos ? text : text.replace(at, 2, mebibytes + "Mi");
  }
};

}  // namespace hearth
