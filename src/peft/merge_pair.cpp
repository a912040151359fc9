#include "peft/merge_pair.h"

#include <algorithm>

#include "base/error.h"
#include "model/parameter_access.h"

namespace hearth {

constexpr int64_t kTileRows = 16;

std::optional<MergePair> merge_pair(const ParameterTable& table, TensorId matrix,
                                    std::vector<std::byte>& staging) {
  const Tensor& tensor = table.tensor(matrix);
  const auto adapter = table.adapter_of(tensor.block);
  if (!adapter) return std::nullopt;
  MergePair pair;
  const Block& block = table.block(*adapter);
  pair.scale = static_cast<float>(block.scale);
  for (TensorId id = block.begin; id < block.end; ++id) {
    const Tensor& factor = table.tensor(id);
    if (factor.slot != tensor.slot) continue;
    const ConstView home = factor.home().view;
    HEARTH_CHECK(factor.home().present() && home.contiguous(),
                 "merge: no memory of " + factor.name);
    std::vector<float>& to = factor.factor == Factor::a ? pair.a : pair.b;
    to.resize(static_cast<size_t>(factor.size()));
    convert(home.dtype, host_elements(table, factor, home, 0, factor.size(), staging), DType::f32,
            to.data(), factor.size());
    if (factor.factor == Factor::a) pair.rank = factor.rows;
  }
  if (pair.a.empty()) return std::nullopt;
  return pair;
}

void add_product(const MergePair& pair, int64_t first, int64_t rows, int64_t columns, float* values,
                 const Pool& pool) {
  const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  pool.run(tiles, [&](int64_t tile, int) {
    std::vector<float> sum(static_cast<size_t>(columns));
    const int64_t end = std::min(rows, (tile + 1) * kTileRows);
    for (int64_t r = tile * kTileRows; r < end; ++r) {
      std::fill(sum.begin(), sum.end(), 0.0f);
      for (int64_t j = 0; j < pair.rank; ++j) {
        const float b = pair.b[static_cast<size_t>((first + r) * pair.rank + j)];
        const float* a = pair.a.data() + j * columns;
        for (int64_t c = 0; c < columns; ++c) sum[static_cast<size_t>(c)] += b * a[c];
      }
      float* out = values + r * columns;
      for (int64_t c = 0; c < columns; ++c) out[c] += pair.scale * sum[static_cast<size_t>(c)];
    }
  });
}

}  // namespace hearth
