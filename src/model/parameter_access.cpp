#include "model/parameter_access.h"

#include <algorithm>

#include "model/weight_copy.h"

namespace hearth {

const void* host_elements(const ParameterTable& table, const Tensor& tensor, const ConstView& copy,
                          int64_t begin, int64_t n, std::vector<std::byte>& staging) {
  const auto* at = static_cast<const std::byte*>(elements_at(copy.data, copy.dtype, begin));
  const size_t bytes = static_cast<size_t>(n) * size_of(copy.dtype);
  return host_bytes(table.memory(), table.block(tensor.block).place, {at, bytes}, staging).data();
}

void put_elements(const ParameterTable& table, const Tensor& tensor, const View& copy,
                  int64_t begin, DType type, const void* data, int64_t n,
                  std::vector<std::byte>& staging) {
  const Place place = table.block(tensor.block).place;
  auto* to = static_cast<std::byte*>(elements_at(copy.raw(), copy.dtype, begin));
  if (table.memory().host_reaches(place)) return convert(type, data, copy.dtype, to, n);
  const size_t bytes = static_cast<size_t>(n) * size_of(copy.dtype);
  if (type == copy.dtype) {
    return table.memory().write(place, to, {static_cast<const std::byte*>(data), bytes});
  }
  staging.resize(bytes);
  convert(type, data, copy.dtype, staging.data(), n);
  table.memory().write(place, to, staging);
}

void refresh_working_copies(ParameterTable& table) {
  std::vector<std::byte> from, to;
  for (Tensor& t : table.tensors()) {
    const Copy& working = t.copies[static_cast<int>(CopyRole::working)];
    if (!working.present()) continue;
    const View master = t.copies[static_cast<int>(CopyRole::master)].view;
    for (int64_t begin = 0; begin < t.size(); begin += kPieceElements) {
      const int64_t n = std::min(kPieceElements, t.size() - begin);
      put_elements(table, t, working.view, begin, master.dtype,
                   host_elements(table, t, master, begin, n, from), n, to);
    }
  }
}

}  // namespace hearth
