// Programs that ranks run together, whatever moves their bytes. They throw where something is wrong:
// each rank is a thread or a process of its own, which no assertion of Catch2 allows.
#pragma once

#include <string>
#include <vector>

#include "comm/world.h"

namespace hearth::test {

/// Every rank of a world calls `run`; it returns if all went well. Any number of ranks.
struct NamedProgram {
  std::string name;
  void (*run)(World&);
};
const std::vector<NamedProgram>& rank_programs();

/// Programs after which the run has failed at every rank, and how each of them must end.
struct FailingProgram {
  std::string name;
  void (*run)(World&);
  bool says;  // false: the rank that fails leaves without a word
  ExitCode code;
  std::string line;  // a part of the line of every rank but the one that fails
  int32_t rank = 0;  // which fails
};
/// For at least two ranks.
std::vector<FailingProgram> failing_programs(int32_t ranks);

}  // namespace hearth::test
