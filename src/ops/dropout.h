// Decides which elements dropout keeps, identically on every back end.
#pragma once

#include <algorithm>

#include "base/random.h"
#include "ops/view.h"

namespace hearth {

/// to[i] = drop(from[i]) for columns [column, column + n) of a row of this part of the input; `column` is
/// a multiple of four, and so is the part's first.
/// Each Philox4x32-10 block, with the key and the counter (column / 4, id of the row), serves four
/// elements. An element is dropped if its number is below rate * 2^32. `to` may be `from`.
template <class T>
void drop_row(const Dropout& dropout, int64_t row, int64_t column, const T* from, T* to,
              int64_t n) {
  const auto limit = static_cast<uint64_t>(dropout.rate * 0x1p32);
  const T scale = static_cast<T>(1 / (1 - dropout.rate));
  const auto id = static_cast<uint64_t>(dropout.id(row));
  for (int64_t i = 0; i < n; i += 4) {
    const auto quad = static_cast<uint64_t>((dropout.first_column + column + i) / 4);
    const auto words =
        philox4x32({static_cast<uint32_t>(quad), static_cast<uint32_t>(quad >> 32),
                    static_cast<uint32_t>(id), static_cast<uint32_t>(id >> 32)},
                   {static_cast<uint32_t>(dropout.key), static_cast<uint32_t>(dropout.key >> 32)});
    for (int64_t j = 0; j < std::min<int64_t>(4, n - i); ++j) {
      to[i + j] = words[static_cast<size_t>(j)] < limit ? T{0} : scale * from[i + j];
    }
  }
}

}  // namespace hearth
