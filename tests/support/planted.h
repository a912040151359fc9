// Plants faults in a test program: with the environment variable HEARTH_PLANTED, names separated by
// commas, or for the life of a guard. What a fault does is said where it is made, at a seam of the
// product that tests may change:
//   faulty_bodies.cpp, faulty_ops.h    what tasks compute with, and ops that compute it (replace_body)
//   faulty_state.cpp                   components of saved state (decorate_components)
//   faulty_calls.cpp, faulty_files.cpp calls that reach files, and what they read (FileCalls)
// The few that have no such seam ask planted() in the product (base/planted.h).
#pragma once

#include <string>

#include "base/planted.h"

namespace hearth::test {

/// Whether any fault is planted at all.
bool any_planted();

class PlantedFault {
 public:
  explicit PlantedFault(std::string name);
  ~PlantedFault();
  PlantedFault(const PlantedFault&) = delete;
  PlantedFault& operator=(const PlantedFault&) = delete;

 private:
  std::string name_;
  bool is_new_ = false;
};

}  // namespace hearth::test
