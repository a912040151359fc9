#include "model/spec.h"

#include <algorithm>

namespace hearth {

int64_t ModelSpec::moe_layers() const { return std::count(moe.begin(), moe.end(), true); }

bool ModelSpec::has_experts(int64_t layer) const {
  return layer >= 0 && layer < layers && moe[static_cast<size_t>(layer)];
}

}  // namespace hearth
