#include "ops/op.h"

#include "base/error.h"

namespace hearth {

void AnyOp::fail(const std::string& what) const {
  HEARTH_CHECK(false, std::string(name_) + ": " + what);
}

}  // namespace hearth
