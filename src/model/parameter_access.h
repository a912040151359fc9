// Elements of the table's copies for the host, wherever they live.
#pragma once

#include <cstddef>
#include <vector>

#include "model/parameter_table.h"

namespace hearth {

/// Elements [begin, begin + n) of a contiguous copy of the tensor: where they lie if the host reaches
/// them, else brought to `staging`, whose content they replace.
const void* host_elements(const ParameterTable& table, const Tensor& tensor, const ConstView& copy,
                          int64_t begin, int64_t n, std::vector<std::byte>& staging);

/// Converts n elements at `data` into those of a contiguous copy from `begin` on; `staging` as
/// above.
void put_elements(const ParameterTable& table, const Tensor& tensor, const View& copy,
                  int64_t begin, DType type, const void* data, int64_t n,
                  std::vector<std::byte>& staging);

/// Rounds the masters into the working copies, which are a function of them.
void refresh_working_copies(ParameterTable& table);

}  // namespace hearth
