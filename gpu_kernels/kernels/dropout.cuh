// Which elements a dropout keeps, on the device: the numbers of ops/dropout.h, bit for bit.
#pragma once

#include "gpu_kernels/launch.h"
#include "gpu_kernels/kernels/product.h"

namespace hearth::HEARTH_GPU {

struct Philox {
  uint32_t word[4];
};

/// Philox4x32-10, see base/random.h.
__device__ inline Philox philox(uint64_t low, uint64_t high, uint64_t key) {
  Philox c = {{static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32),
               static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32)}};
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c.word[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c.word[2];
    c = {{static_cast<uint32_t>(p1 >> 32) ^ c.word[1] ^ k0, static_cast<uint32_t>(p1),
          static_cast<uint32_t>(p0 >> 32) ^ c.word[3] ^ k1, static_cast<uint32_t>(p0)}};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

/// The four numbers of columns [4 * quad, 4 * quad + 4) of a row of the part.
__device__ inline Philox dropout_numbers(const DropoutRule& rule, int64_t row, int64_t quad) {
  const int64_t place = rule.first_row + row;
  const auto id = static_cast<uint64_t>(rule.ids != nullptr ? int64_t{rule.ids[place]} : place);
  return philox(static_cast<uint64_t>(rule.first_quad + quad), id, rule.key);
}

/// x after dropout, by the number of its element.
__device__ inline float dropped(const DropoutRule& rule, uint32_t number, float x) {
  return number < rule.limit ? 0.0f : rule.scale * x;
}

}  // namespace hearth::HEARTH_GPU
