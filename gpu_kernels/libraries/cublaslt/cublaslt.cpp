// Dense products by cuBLASLt. It thinks in columns, so that each matrix here is its transpose there,
// and c = a b is computed as c^T = b^T a^T.
#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "base/error.h"
#include "gpu_kernels/libraries/cublaslt/library.h"
#include "gpu_kernels/libraries/library_workspace.h"
#include "gpu_kernels/libraries/product_libraries.h"

namespace hearth::HEARTH_GPU {
namespace {

// What NVIDIA recommends for Hopper; older devices need less.
constexpr size_t kWorkspace = size_t{32} << 20;

template <class T>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, cublasStatus_t (*)(T)>;

// A product's descriptions and the algorithm for its shape.
struct Prepared {
  Owned<cublasLtMatmulDesc_t> operation{nullptr, nullptr};
  Owned<cublasLtMatrixLayout_t> first{nullptr, nullptr}, second{nullptr, nullptr};
  Owned<cublasLtMatrixLayout_t> result{nullptr, nullptr};
  cublasLtMatmulAlgo_t algorithm{};
  std::string problem;
};

// An algorithm is chosen for these, and kept.
using Key =
    std::tuple<int, Form, Stored, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, bool>;

Key key_of(int device, const DenseProduct& p) {
  return {device,  p.form,     p.a.stored, p.rows,     p.columns,
          p.depth, p.a.stride, p.b.stride, p.c_stride, p.accumulate};
}

// Of operands and results in bytes: what all of its fast algorithms want, and what we promise.
constexpr uint32_t kAlignment = 16;

bool is_aligned(const void* data, int64_t stride, size_t element) {
  return reinterpret_cast<uintptr_t>(data) % kAlignment == 0 &&
         static_cast<size_t>(stride) * element % kAlignment == 0;
}

std::string misfit(const DenseProduct& p) {
  if (p.a.stored != p.b.stored) return "operands of differing types";
  const size_t element = p.a.stored == Stored::f32 ? 4 : 2;
  if (!is_aligned(p.a.data, p.a.stride, element) || !is_aligned(p.b.data, p.b.stride, element) ||
      !is_aligned(p.c, p.c_stride, sizeof(float))) {
    return "operands not aligned to 16 bytes";
  }
  return {};
}

bool ok(cublasStatus_t status) { return status == CUBLAS_STATUS_SUCCESS; }

Owned<cublasLtMatrixLayout_t> layout(cudaDataType_t type, int64_t rows, int64_t cols,
                                     int64_t stride) {
  cublasLtMatrixLayout_t made = nullptr;
  if (!ok(cublaslt().layout_create(&made, type, static_cast<uint64_t>(rows),
                                   static_cast<uint64_t>(cols), stride))) {
    return {nullptr, nullptr};
  }
  return {made, cublaslt().layout_destroy};
}

class CublasLtLibrary final : public ProductLibrary {
 public:
  std::string_view name() const override { return "cuBLASLt"; }
  std::string version() const override {
    if (!cublaslt().problem.empty()) return {};
    const size_t number = cublaslt().get_version();  // major * 10000 + minor * 100 + patch
    return std::to_string(number / 10000) + '.' + std::to_string(number / 100 % 100) + '.' +
           std::to_string(number % 100);
  }
  size_t scratch_bytes() const override {
    return cublaslt().problem.empty() ? library_workspace_bytes(kWorkspace) : 0;
  }

  std::string declines(GpuStream& stream, const DenseProduct& p) const override {
    if (!cublaslt().problem.empty()) return cublaslt().problem;
    if (std::string problem = misfit(p); !problem.empty()) return problem;
    stream.handle();  // makes its device the current one
    return prepared(p).problem;
  }

  void run(GpuStream& stream, const DenseProduct& p) const override {
    void* const on = stream.handle();  // makes its device the current one
    const Prepared& ready = prepared(p);
    Scratch::Frame frame(stream.scratch());
    void* const workspace = take_library_workspace(stream.scratch(), kWorkspace);
    const float one = 1, before = p.accumulate ? 1 : 0;
    const cublasStatus_t status = cublaslt().matmul(
        handle(), ready.operation.get(), &one, p.b.data, ready.first.get(), p.a.data,
        ready.second.get(), &before, p.c, ready.result.get(), p.c, ready.result.get(),
        &ready.algorithm, workspace, kWorkspace, static_cast<cudaStream_t>(on));
    if (!ok(status)) {
      throw device_error("cuBLASLt: cublasLtMatmul failed with status " +
                         std::to_string(static_cast<int>(status)));
    }
  }

 private:
  // Of the current device; never destroyed, as the driver may be gone by then.
  cublasLtHandle_t handle() const {
    const std::lock_guard lock(mutex_);
    return handle_of(current_device());
  }

  static int current_device() {
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess) throw device_error("cuBLASLt: no current device");
    return device;
  }

  cublasLtHandle_t handle_of(int device) const {
    cublasLtHandle_t& made = handles_[device];
    if (made == nullptr && !ok(cublaslt().create(&made))) made = nullptr;
    return made;
  }

  const Prepared& prepared(const DenseProduct& p) const {
    const int device = current_device();
    const std::lock_guard lock(mutex_);
    const auto [place, is_new] = prepared_.try_emplace(key_of(device, p));
    if (is_new) prepare(handle_of(device), p, place->second);
    return place->second;
  }

  static void prepare(cublasLtHandle_t handle, const DenseProduct& p, Prepared& to) {
    to.problem = "it cannot be set up on this device";
    if (handle == nullptr) return;
    const CublasLt& lt = cublaslt();
    cublasLtMatmulDesc_t operation = nullptr;
    // Products and sums in f32, never TF32; bf16 operands have exact products.
    if (!ok(lt.desc_create(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F))) return;
    to.operation = {operation, lt.desc_destroy};
    const cublasOperation_t b_turned = p.form == Form::forward ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t a_turned = p.form == Form::wgrad ? CUBLAS_OP_T : CUBLAS_OP_N;
    if (!ok(lt.desc_set(operation, CUBLASLT_MATMUL_DESC_TRANSA, &b_turned, sizeof b_turned)) ||
        !ok(lt.desc_set(operation, CUBLASLT_MATMUL_DESC_TRANSB, &a_turned, sizeof a_turned))) {
      return;
    }
    const cudaDataType_t type = p.a.stored == Stored::f32 ? CUDA_R_32F : CUDA_R_16BF;
    to.first = p.form == Form::forward ? layout(type, p.depth, p.columns, p.b.stride)
                                       : layout(type, p.columns, p.depth, p.b.stride);
    to.second = p.form == Form::wgrad ? layout(type, p.rows, p.depth, p.a.stride)
                                      : layout(type, p.depth, p.rows, p.a.stride);
    to.result = layout(CUDA_R_32F, p.columns, p.rows, p.c_stride);
    if (!to.first || !to.second || !to.result) return;
    choose_algorithm(handle, to);
  }

  // The heuristic's first, without reductions whose order is open.
  static void choose_algorithm(cublasLtHandle_t handle, Prepared& to) {
    const CublasLt& lt = cublaslt();
    cublasLtMatmulPreference_t made = nullptr;
    if (!ok(lt.preference_create(&made))) return;
    const Owned<cublasLtMatmulPreference_t> preference(made, lt.preference_destroy);
    const uint32_t schemes =
        CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const size_t workspace = kWorkspace;
    if (!ok(lt.preference_set(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                              sizeof workspace)) ||
        !ok(lt.preference_set(made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                              sizeof schemes))) {
      return;
    }
    for (const auto operand :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      if (!ok(lt.preference_set(made, operand, &kAlignment, sizeof kAlignment))) return;
    }
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    const cublasStatus_t status =
        lt.heuristic(handle, to.operation.get(), to.first.get(), to.second.get(), to.result.get(),
                     to.result.get(), made, 1, &result, &found);
    if (!ok(status) || found == 0) {
      to.problem = "no algorithm for a product of this shape";
      return;
    }
    to.algorithm = result.algo;
    to.problem.clear();
  }

  mutable std::mutex mutex_;
  mutable std::map<int, cublasLtHandle_t> handles_;
  mutable std::map<Key, Prepared> prepared_;
};

}  // namespace

const ProductLibrary& cublaslt_library() {
  static const CublasLtLibrary library;
  return library;
}

}  // namespace hearth::HEARTH_GPU
