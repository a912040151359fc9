// Libraries that a program loads only if they are there.
#pragma once

#include <optional>
#include <string>

namespace hearth {

struct FoundLibrary {
  std::string file;     // name that the loader found it by
  std::string version;  // as the library says; empty if it says none
};

/// The MPI library of the loader's path. It is asked for its version, not started.
std::optional<FoundLibrary> find_mpi();
std::optional<FoundLibrary> find_nccl();

/// "2.23.4" of NCCL's number 22304. Before 2.9 it was 2804 for 2.8.4.
std::string nccl_version(int number);

}  // namespace hearth
