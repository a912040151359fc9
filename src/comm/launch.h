// What the launcher of this process says of it: mpirun of Open MPI or MPICH, or srun.
#pragma once

#include <cstdint>

namespace hearth {

/// This process among those that were started together. One rank: no launcher, or one for one process.
struct Launch {
  int32_t rank = 0, ranks = 1;
};

/// From the environment; starts nothing.
Launch launch_of_process();

}  // namespace hearth
