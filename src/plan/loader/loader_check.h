// Checks that what a loader keeps in several places agrees.
#pragma once

#include "plan/loader/loader.h"

namespace hearth {

/// For tests and debug builds: takes time in proportion to items and slots.
struct LoaderCheck {
  /// std::logic_error that names the contradiction.
  static void validate(const Loader& loader);

 private:
  static void validate_items(const Loader& loader);
  static void validate_slots(const Loader& loader);
  static void validate_ranking(const Loader& loader);
};

}  // namespace hearth
