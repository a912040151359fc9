// Plants faults in a test program: by the environment variable HEARTH_PLANTED, names separated by
// commas, or by a guard object. These files make and describe the faults, at seams of the product:
//   faulty_bodies.cpp, faulty_ops.h    bodies with wrong numbers, and wrong ops (replace_body)
//   faulty_state.cpp                   components of saved state (decorate_components)
//   faulty_calls.cpp, faulty_files.cpp file calls, and the content that they read (FileCalls)
// The few faults without such a seam call planted() in the product (base/planted.h).
#pragma once

#include <string>

#include "base/planted.h"

namespace hearth::test {

/// Whether any fault is planted.
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
