#include "comm/mpi_world.h"

namespace hearth {

std::string why_no_mpi() { return HEARTH_MPI_WHY_NOT; }

std::unique_ptr<World> make_mpi_world(const MpiWorldOptions&) {
  throw usage_error("several processes: this program was built without MPI (" + why_no_mpi() + ")");
}

}  // namespace hearth
