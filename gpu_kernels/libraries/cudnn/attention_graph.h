// One attention op as a graph of cuDNN's frontend. Only the .cpp includes the frontend's headers,
// which take a minute to compile.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>

#include "gpu_kernels/kernels/attention_packing.h"

namespace hearth::HEARTH_GPU {

/// What a graph is built for. Numbers of rows and sequences are upper bounds.
struct AttentionGraphShape {
  bool backward = false;
  int64_t heads = 0, kv_heads = 0, head_dim = 0, window = 0;
  float scale = 0;
  int64_t sequences = 0, rows = 0, key_rows = 0;
  int64_t sum_stride = 0;  // of log_sum
  auto operator<=>(const AttentionGraphShape&) const = default;
};

/// Device memory; all bf16, except log_sum, which is f32. Forward reads q, k, v and writes out and
/// log_sum. Backward reads these five and dout, and writes dq, dk, dv.
struct AttentionGraphData {
  const void *q = nullptr, *k = nullptr, *v = nullptr, *dout = nullptr;
  void *out = nullptr, *log_sum = nullptr;
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;
  AttentionPacking packing;
  void* workspace = nullptr;
};

class AttentionGraph {
 public:
  /// For the device of a cudnnHandle_t. Requires that `cudnn()` has no problem.
  AttentionGraph(void* handle, const AttentionGraphShape& shape);
  /// For a device that may be absent, given by the JSON of cuDNN's device properties and its
  /// architecture (90 is sm_90). Such a graph cannot run.
  AttentionGraph(const std::string& device, int architecture, const AttentionGraphShape& shape);
  ~AttentionGraph();

  /// Why cuDNN cannot compute the graph; empty: it can.
  const std::string& problem() const { return problem_; }
  int64_t workspace_bytes() const { return workspace_; }
  /// Enqueues on the handle's stream.
  void run(void* handle, const AttentionGraphData& data) const;

 private:
  struct Parts;
  template <class Begin, class Finish>
  void build(const AttentionGraphShape& shape, Begin begin, Finish finish);
  std::unique_ptr<Parts> parts_;
  int64_t workspace_ = 0;
  std::string problem_;
};

}  // namespace hearth::HEARTH_GPU
