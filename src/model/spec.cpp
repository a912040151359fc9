#include "model/spec.h"

#include <algorithm>

namespace hearth {

int64_t ModelSpec::moe_layers() const { return std::count(moe.begin(), moe.end(), true); }

}  // namespace hearth
