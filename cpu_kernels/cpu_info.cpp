#include "cpu_kernels/cpu_info.h"

#include <dnnl.hpp>

#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/micro_kernel.h"
#include "cpu_kernels/onednn_shim.h"

namespace hearth {

std::string cpu_isa() { return onednn_isa(); }
std::string CpuOps::instructions() const { return onednn_isa(); }

std::string onednn_version() { return onednn_library_version(); }
bool has_fast_bf16() { return onednn_has_fast_bf16(); }

std::vector<std::string> matmul_variants() {
  const std::string isa = onednn_isa();
  std::vector<std::string> lines;
  lines.push_back(onednn_has_fast_bf16()
                      ? "bf16 by oneDNN: taken for bf16 compute, " + isa + " has bf16 products"
                      : "bf16 by oneDNN: declined, " + isa +
                            " has no bf16 products; operands are rounded and multiplied in f32");
  lines.push_back(onednn_has_avx512()
                      ? "packed f32, AVX-512, 14x32: taken for all else"
                      : "packed f32, AVX-512, 14x32: declined, " + isa + " has no AVX-512");
  lines.push_back(onednn_has_avx512() ? "packed f32, AVX2, 6x16: not needed"
                                      : "packed f32, AVX2, 6x16: taken for all else");
  return lines;
}

}  // namespace hearth
