// Attention by cuDNN: bf16 copies around its graphs, which are kept by shape.
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "gpu_kernels/kernels/elementwise_rows.h"
#include "gpu_kernels/kernels/matrix.h"
#include "gpu_kernels/kernels/product_rows.h"
#include "gpu_kernels/libraries/attention_libraries.h"
#include "gpu_kernels/libraries/cudnn/attention_graph.h"
#include "gpu_kernels/libraries/cudnn/library.h"
#include "gpu_kernels/libraries/library_workspace.h"

namespace hearth::HEARTH_GPU {
namespace {

constexpr size_t kSmallWorkspace = size_t{4} << 20;

// What a workspace may take. The backward keeps dq and, a copy a query head, dk and dv in f32, and sums
// of rows; a graph that asks for rows times rows is not taken.
size_t most_workspace(bool backward, int64_t heads, int64_t head_dim, int64_t rows,
                      int64_t key_rows) {
  if (!backward) return kSmallWorkspace;
  const int64_t floats = heads * head_dim * (rows + 2 * key_rows) + 2 * heads * rows;
  return kSmallWorkspace + static_cast<size_t>(floats) * sizeof(float);
}

AttentionGraphShape shape_of(const AttentionProblem& p) {
  const AttentionArguments& a = p.args;
  AttentionGraphShape shape;
  shape.backward = p.backward;
  shape.heads = a.heads;
  shape.kv_heads = a.kv_heads;
  shape.head_dim = a.head_dim;
  shape.window = a.window;
  shape.scale = a.scale;
  shape.sequences = coarse_count(a.sequences);
  shape.rows = coarse_rows(a.query_rows);
  shape.key_rows = coarse_rows(a.key_rows);
  shape.sum_stride = a.log_sum.stride;
  return shape;
}

std::string misfit(const AttentionProblem& p) {
  const AttentionArguments& a = p.args;
  if (a.sequences == 0 || a.query_rows == 0 || a.key_rows == 0) return "nothing to compute";
  if (a.query_rows < a.key_rows) return "fewer queries than keys";
  if (a.sequences > a.query_rows) return "more sequences than rows";
  if (a.head_dim % 8 != 0) return "a head size that is not a multiple of 8";
  return p.backward ? cudnn().no_ordered_backward : "";
}

uint16_t* take_rows(GpuStream& stream, int64_t rows, int64_t columns) {
  return stream.scratch().take<uint16_t>(rows * columns);
}

size_t row_bytes(int64_t rows, int64_t columns) {
  return align_up(static_cast<size_t>(rows * columns) * sizeof(uint16_t));
}

// f32 from the library's bf16.
void widen(GpuStream& stream, const uint16_t* from, int64_t rows, int64_t columns,
           const HeadMatrix& to) {
  CastArguments args;
  args.rows = rows;
  args.cols = columns;
  args.quads = columns % 4 == 0 && to.vectors;
  args.from = {from, columns, Stored::bf16};
  args.to = {to.data, to.stride};
  args.stored = Stored::f32;
  cast_on(stream.handle(), args);
}

class CudnnLibrary final : public AttentionLibrary {
 public:
  std::string_view name() const override { return "cuDNN"; }
  std::string version() const override {
    if (!cudnn().problem.empty()) return {};
    const int64_t number = cudnn().version;
    return std::to_string(number / 10000) + '.' + std::to_string(number / 100 % 100) + '.' +
           std::to_string(number % 100);
  }

  std::string declines(GpuStream& stream, const AttentionProblem& p) const override {
    if (!cudnn().problem.empty()) return cudnn().problem;
    if (std::string problem = misfit(p); !problem.empty()) return problem;
    const AttentionGraphShape shape = shape_of(p);
    const std::lock_guard lock(mutex_);
    const AttentionGraph* const graph = graph_of(stream, shape);
    if (graph == nullptr) return "it cannot be set up on this device";
    if (!graph->problem().empty()) return graph->problem();
    if (static_cast<size_t>(graph->workspace_bytes()) >
        most_workspace(p.backward, shape.heads, shape.head_dim, shape.rows, shape.key_rows)) {
      return "a workspace of " + std::to_string(graph->workspace_bytes() >> 20) + " MiB";
    }
    return {};
  }

  void run(GpuStream& stream, const AttentionProblem& p) const override {
    const AttentionArguments& a = p.args;
    const AttentionGraphShape shape = shape_of(p);
    const int64_t width = shape.heads * shape.head_dim, kv_width = shape.kv_heads * shape.head_dim;
    Scratch::Frame frame(stream.scratch());
    AttentionGraphData data;
    data.packing = take_packing(stream.scratch(), shape.sequences);
    pack_sequences_on(stream.handle(), a, data.packing);
    data.q = a.q16.data;
    data.k = a.k16.data;
    data.v = a.v16.data;
    data.log_sum = a.log_sum.data;
    uint16_t* const out = take_rows(stream, a.query_rows, width);
    data.out = out;
    if (!p.backward) {
      run_graph(stream, shape, data);
      widen(stream, out, a.query_rows, width, a.out);
      return;
    }
    round(stream, a.out, a.query_rows, width, out);
    data.dout = a.dout16.data;
    uint16_t* const dq = take_rows(stream, a.query_rows, width);
    uint16_t* const dk = take_rows(stream, a.key_rows, kv_width);
    uint16_t* const dv = take_rows(stream, a.key_rows, kv_width);
    data.dq = dq;
    data.dk = dk;
    data.dv = dv;
    run_graph(stream, shape, data);
    widen(stream, dq, a.query_rows, width, a.dq);
    widen(stream, dk, a.key_rows, kv_width, a.dk);
    widen(stream, dv, a.key_rows, kv_width, a.dv);
  }

  size_t scratch_bytes(int64_t heads, int64_t kv_heads, int64_t head_dim, int64_t rows,
                       int64_t key_rows) const override {
    if (!cudnn().problem.empty() || rows == 0) return 0;
    const bool backward = cudnn().no_ordered_backward.empty();
    size_t bytes = packing_bytes(coarse_count(rows)) + row_bytes(rows, heads * head_dim) +
                   library_workspace_bytes(most_workspace(
                       backward, heads, head_dim, coarse_rows(rows), coarse_rows(key_rows)));
    if (backward) {
      bytes += row_bytes(rows, heads * head_dim) + 2 * row_bytes(key_rows, kv_heads * head_dim);
    }
    return bytes;
  }

 private:
  using Create = cudnnStatus_t (*)(cudnnHandle_t*);
  using SetStream = cudnnStatus_t (*)(cudnnHandle_t, cudaStream_t);

  template <class F>
  static F function(const char* name) {
    return reinterpret_cast<F>(dlsym(cudnn().library, name));
  }

  static int current_device() {
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess) throw device_error("cuDNN: no current device");
    return device;
  }

  static void round(GpuStream& stream, const HeadMatrix& from, int64_t rows, int64_t columns,
                    uint16_t* to) {
    PrepareArgs args;
    args.from = from.data;
    args.from_stride = from.stride;
    args.to = to;
    args.to_stride = columns;
    args.stored = Stored::bf16;
    args.rows = rows;
    args.columns = columns;
    prepare_rows_on(stream.handle(), args);
  }

  void run_graph(GpuStream& stream, const AttentionGraphShape& shape,
                 AttentionGraphData& data) const {
    const std::lock_guard lock(mutex_);  // one issues at a time: a handle has one stream
    const AttentionGraph* const graph = graph_of(stream, shape);
    HEARTH_CHECK(graph != nullptr, "cuDNN: run without being asked");
    data.workspace =
        take_library_workspace(stream.scratch(), static_cast<size_t>(graph->workspace_bytes()));
    graph->run(handle_of(stream), data);
  }

  // Of the current device and this stream; never destroyed, as the driver may be gone by then.
  cudnnHandle_t handle_of(GpuStream& stream) const {
    void* const on = stream.handle();  // makes its device the current one
    cudnnHandle_t& made = handles_[{current_device(), on}];
    if (made != nullptr) return made;
    const auto create = function<Create>("cudnnCreate");
    const auto set_stream = function<SetStream>("cudnnSetStream");
    cudnnHandle_t handle = nullptr;
    if (create == nullptr || set_stream == nullptr || create(&handle) != CUDNN_STATUS_SUCCESS) {
      return nullptr;
    }
    if (set_stream(handle, static_cast<cudaStream_t>(on)) == CUDNN_STATUS_SUCCESS) {
      made = handle;
    }
    return made;
  }

  const AttentionGraph* graph_of(GpuStream& stream, const AttentionGraphShape& shape) const {
    const cudnnHandle_t handle = handle_of(stream);
    if (handle == nullptr) return nullptr;
    std::unique_ptr<AttentionGraph>& graph = graphs_[{current_device(), shape}];
    if (graph == nullptr) graph = std::make_unique<AttentionGraph>(handle, shape);
    return graph.get();
  }

  mutable std::mutex mutex_;
  mutable std::map<std::pair<int, void*>, cudnnHandle_t> handles_;
  mutable std::map<std::pair<int, AttentionGraphShape>, std::unique_ptr<AttentionGraph>> graphs_;
};

}  // namespace

const AttentionLibrary& cudnn_library() {
  static const auto* const library = new CudnnLibrary;  // its graphs outlive the driver otherwise
  return *library;
}

}  // namespace hearth::HEARTH_GPU
