// Uniform noise that is a function of a key and of an element's place, identical on every back end.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/random.h"

namespace hearth {

/// NEFTune (Jain et al., arXiv 2310.05914): x += alpha / sqrt(L H) * u, with u uniform in [-1, 1), of
/// a document of L tokens and rows of H elements.
struct Noise {
  uint64_t key = 0;  // of the step and the micro-batch
  double alpha = 0;
};

/// Adds scale * u to the columns [column, column + n) of a row; `column` is a multiple of four. Each
/// Philox4x32-10 block, with the key and the counter (column / 4, row), serves four elements. u has
/// 24 bits, so f32 holds it exactly.
template <class T>
void add_noise(uint64_t key, int64_t row, int64_t column, double scale, T* x, int64_t n) {
  const auto id = static_cast<uint64_t>(row);
  for (int64_t i = 0; i < n; i += 4) {
    const auto quad = static_cast<uint64_t>((column + i) / 4);
    const auto words = philox4x32({static_cast<uint32_t>(quad), static_cast<uint32_t>(quad >> 32),
                                   static_cast<uint32_t>(id), static_cast<uint32_t>(id >> 32)},
                                  {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
    for (int64_t j = 0; j < std::min<int64_t>(4, n - i); ++j) {
      const auto number = static_cast<int32_t>(words[static_cast<size_t>(j)] >> 8) - (1 << 23);
      x[i + j] += static_cast<T>(scale) * (static_cast<T>(number) * static_cast<T>(0x1p-23));
    }
  }
}

}  // namespace hearth
