// A predictor that is wrong as often as one wants: for studies of what its mistakes cost.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"

namespace hearth {

struct Foretold {
  std::vector<int64_t>
      counts;        // by expert, as the predictor has them; they add up as the real ones
  int64_t hits = 0;  // choices foretold right
};

/// A prediction of `counts` (choices by expert) in which a share `hit` of the choices is right, the
/// same share for each expert. The wrong guesses go to experts by chance: in proportion to
/// exponentially distributed draws of `random`. No expert is foretold more choices than `tokens`.
/// `hit` is 0 to 1. With one expert, all guesses are right.
Foretold foretell(std::span<const int64_t> counts, int64_t tokens, double hit,
                  const Random& random);

}  // namespace hearth
