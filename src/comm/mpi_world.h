// Ranks as processes that MPI started (mpirun, srun). Open MPI or MPICH; optional at build time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "comm/world.h"

namespace hearth {

struct MpiWorldOptions {
  /// Larger messages are sent in pieces of this size. MPI counts bytes with an int, and over TCP the two
  /// directions of a pair share the time better with small ones (docs/benchmarks/ranks.md).
  size_t piece_bytes = size_t{1} << 18;
};

/// Why this program has no MPI; empty if it has.
std::string why_no_mpi();

/// This process as a rank, once per process: initialises MPI, and ends it when the world is
/// destroyed. A thread of its own makes every call of MPI, and polls while messages are under way:
/// Open MPI makes no progress outside of its calls. Memory of messages is the host's. All ranks call
/// this. Usage error without MPI.
///
/// A failure that a rank knows of reaches all others in milliseconds. Once watched, the thread tells
/// all others that its process lives, and notices who does not: stopped processes, cut networks. After
/// a failure MPI is not always ended in order, so the launcher may say that a process ended early.
std::unique_ptr<World> make_mpi_world(const MpiWorldOptions& options = {});

}  // namespace hearth
