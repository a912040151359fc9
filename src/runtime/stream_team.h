// The workers of a compute stream.
#pragma once

#include <vector>

namespace hearth {

struct StreamTeam {
  int workers = 1;
  std::vector<int> cores = {};  // logical CPUs of the workers, one each; empty: unbound
};

}  // namespace hearth
