#include "base/random.h"

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/hash.h"

namespace hearth {
namespace {

using Block = std::array<uint32_t, 4>;

// A bijection of the seed for every site (the finaliser of SplitMix64, Steele et al. 2014), so that
// two seeds never share a key at one site.
uint64_t key_of(uint64_t seed, RandomSite site) {
  uint64_t z = seed + 0x9e3779b97f4a7c15u * static_cast<uint64_t>(site);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint64_t low_half(const Block& b) { return b[0] | uint64_t{b[1]} << 32; }
uint64_t high_half(const Block& b) { return b[2] | uint64_t{b[3]} << 32; }

}  // namespace

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(p0)};
    key[0] += 0x9E3779B9u;  // the golden ratio
    key[1] += 0xBB67AE85u;  // sqrt(3) - 1
  }
  return counter;
}

Block Random::block(uint64_t index) const {
  const uint64_t key = key_of(seed_, site_);
  return philox4x32({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), a_, b_},
                    {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
}

uint64_t Random::bits(uint64_t index) const { return low_half(block(index)); }

double Random::uniform(uint64_t index) const {
  return static_cast<double>(bits(index) >> 11) * 0x1p-53;
}

uint64_t Random::below(uint64_t index, uint64_t n) const {
  HEARTH_CHECK(n > 0, "a draw below zero values");
  // floor(x * n / 2^128) of the whole block x: no value is favoured by more than n / 2^128.
  __extension__ using uint128 = unsigned __int128;
  const Block b = block(index);
  const uint128 low = uint128{low_half(b)} * n;
  const uint128 high = uint128{high_half(b)} * n;
  return static_cast<uint64_t>((high + (low >> 64)) >> 64);
}

double Random::normal(uint64_t index) const {
  const Block b = block(index);
  const double u = static_cast<double>((low_half(b) >> 11) + 1) * 0x1p-53;  // (0, 1]
  const double v = static_cast<double>(high_half(b) >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

uint64_t name_key(std::string_view name) { return digest_of(name).low; }

}  // namespace hearth
