// Host access to the elements of the table's copies, at any place.
#pragma once

#include <cstddef>
#include <vector>

#include "model/parameter_table.h"

namespace hearth {

/// Elements [begin, begin + n) of a contiguous copy of the tensor: in place if the host can access
/// them, else a copy in `staging`, which is overwritten.
const void* host_elements(const ParameterTable& table, const Tensor& tensor, const ConstView& copy,
                          int64_t begin, int64_t n, std::vector<std::byte>& staging);

/// Converts n elements at `data` and writes them to a contiguous copy, from element `begin` on.
/// Uses `staging` if the host cannot access the copy.
void put_elements(const ParameterTable& table, const Tensor& tensor, const View& copy,
                  int64_t begin, DType type, const void* data, int64_t n,
                  std::vector<std::byte>& staging);

/// Recomputes all working copies by rounding the masters.
void refresh_working_copies(ParameterTable& table);

}  // namespace hearth
