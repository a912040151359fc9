#include "cpu_kernels/cpu_info.h"

#include <dnnl.hpp>

#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/micro_kernel.h"
#include "cpu_kernels/onednn_shim.h"
#include "cpu_kernels/product.h"

namespace hearth {

std::string cpu_isa() { return onednn_isa(); }
std::string CpuOps::instructions() const { return onednn_isa(); }

std::string onednn_version() { return onednn_library_version(); }
bool has_fast_bf16() { return onednn_has_fast_bf16(); }

std::vector<std::string> matmul_variants() {
  std::vector<std::string> lines;
  for (const bool bf16 : {true, false}) {
    for (const ProductImplementation* one : product_implementations(bf16)) {
      const std::string reason = one->missing();
      lines.push_back(std::string(bf16 ? "bf16" : "f32") + " products, " +
                      std::string(one->name()) + ": " +
                      (reason.empty() ? "available" : "not used, " + reason));
    }
  }
  lines.push_back(std::string("kernel of f32: ") + micro_kernel().name);
  return lines;
}

}  // namespace hearth
