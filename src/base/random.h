// Random numbers from a counter: Philox4x32-10 (Salmon et al., SC 2011). A draw is a pure function
// of (seed, site, coordinates): no stream position to save, and no dependence on the number of
// threads or ranks.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace hearth {

/// Four 32-bit numbers from a 128-bit counter and a 64-bit key.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// What draws. Saved runs depend on the numbers, so add new sites at the end.
enum class RandomSite : uint32_t {
  init = 1,
  shuffle = 2,
  split = 3,
  sample = 4,
  dropout = 5,
  routing = 6,
  predictor = 7,
  noise = 8
};

/// A family of draws: key = seed mixed with the site, counter = (index, a, b).
class Random {
 public:
  Random(uint64_t seed, RandomSite site, uint32_t a = 0, uint32_t b = 0)
      : seed_(seed), site_(site), a_(a), b_(b) {}

  uint64_t bits(uint64_t index) const;               // 64 uniform bits
  double uniform(uint64_t index) const;              // [0, 1), 53 bits
  uint64_t below(uint64_t index, uint64_t n) const;  // [0, n), n > 0; bias below 2^-64
  double normal(uint64_t index) const;               // mean 0, variance 1 (Box-Muller)

 private:
  std::array<uint32_t, 4> block(uint64_t index) const;

  uint64_t seed_;
  RandomSite site_;
  uint32_t a_, b_;
};

/// A stable 64-bit key of a name, such as a tensor's.
uint64_t name_key(std::string_view name);

}  // namespace hearth
