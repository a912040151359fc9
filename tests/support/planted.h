// Plants faults of product code (base/planted.h) in a test program: with the environment variable
// HEARTH_PLANTED, names separated by commas, or for the life of a guard.
#pragma once

#include <string>

namespace hearth::test {

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
