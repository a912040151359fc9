// What the launcher of this process says of it: mpirun of Open MPI or MPICH, or srun.
#pragma once

#include <cstdint>

namespace hearth {

/// This process and how many a launcher started with it. Without a launcher: one rank.
struct Launch {
  int32_t rank = 0, ranks = 1;
};

/// From the environment; starts nothing.
Launch launch_of_process();

}  // namespace hearth
