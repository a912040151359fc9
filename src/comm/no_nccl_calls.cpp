// The null twin: builds without nccl.h.
#include "comm/nccl_calls.h"

namespace hearth {

NcclCalls* nccl_calls(std::string& why_not) {
  why_not = HEARTH_NCCL_WHY_NOT;
  return nullptr;
}

}  // namespace hearth
