// Ops of a GPU that compute nothing: each queues one piece of work on a fake CUDA stream, and the
// sizes that it was called with are kept.
#pragma once

#include <algorithm>

#include "base/error.h"
#include "device/cuda_stream.h"
#include "ops/op_set.h"
#include "support/fake_cuda.h"

namespace hearth::test {

/// The largest problem of each kind.
struct SeenSizes {
  int64_t linear_rows = 0, linear_in = 0, linear_out = 0;
  int64_t expert_rows = 0, experts = 0;
  int64_t attention_rows = 0, sequences = 0, heads = 0;
  int64_t loss_rows = 0, vocabulary = 0;
  int64_t row_elements = 0, parameters = 0;
};

inline SeenSizes& seen_sizes() {
  static SeenSizes seen;
  return seen;
}

class RecordingOps final : public OpSet {
 public:
  RecordingOps() {
    linear_forward.add("recording", [](Stream& s, ConstView x, const LinearView& w, View) {
      keep(seen_sizes().linear_rows, x.rows);
      keep(seen_sizes().linear_in, w.weight.cols);
      keep(seen_sizes().linear_out, w.weight.rows);
      work(s);
    });
    linear_dgrad.add("recording",
                     [](Stream& s, ConstView, const LinearView&, View, bool) { work(s); });
    linear_wgrad.add("recording", [](Stream& s, ConstView, ConstView, const LinearView&,
                                     const LinearGradient&) { work(s); });
    experts_forward.add("recording", [](Stream& s, ConstView x, const ExpertRows&,
                                        std::span<const ExpertView> experts, View, View, View) {
      keep(seen_sizes().expert_rows, x.rows);
      keep(seen_sizes().experts, std::ssize(experts));
      work(s);
    });
    experts_backward.add("recording", [](Stream& s, ConstView, ConstView, ConstView,
                                         const ExpertRows&, std::span<const ExpertView>, View, View,
                                         View, View, std::span<const ExpertGradient>) { work(s); });
    attention_forward.add("recording",
                          [](Stream& s, const AttentionShape& shape, const SequenceOffsets& at,
                             ConstView q, ConstView, ConstView, View, View) {
                            keep(seen_sizes().attention_rows, q.rows);
                            keep(seen_sizes().sequences, at.query.cols - 1);
                            keep(seen_sizes().heads, shape.heads);
                            work(s);
                          });
    attention_backward.add("recording", [](Stream& s, const AttentionShape&, const SequenceOffsets&,
                                           ConstView, ConstView, ConstView, ConstView, ConstView,
                                           ConstView, View, View, View) { work(s); });
    cross_entropy.add("recording", [](Stream& s, ConstView x, const LinearView& head, const Labels&,
                                      double, View, View, const LinearGradient&) {
      keep(seen_sizes().loss_rows, x.rows);
      keep(seen_sizes().vocabulary, head.weight.rows);
      work(s);
    });
    rmsnorm_forward.add("recording", [](Stream& s, ConstView x, ConstView, double, View, View) {
      keep(seen_sizes().row_elements, x.rows * x.cols);
      work(s);
    });
    add.add("recording", [](Stream& s, ConstView, ConstView, View) { work(s); });
    sum_squares.add("recording", [](Stream& s, std::span<const ConstView>, View) { work(s); });
    adamw.add("recording",
              [](Stream& s, const AdamWOptions&, std::span<const AdamWTensors> tensors) {
                keep(seen_sizes().parameters, tensors[0].gradient.size());
                work(s);
              });
    // Rounded copies of what products read, as on a real GPU.
    linear_scratch.add([](int64_t rows, int64_t out, int64_t in, int64_t) {
      return ScratchNeed{static_cast<size_t>(2 * rows * (out + in)), 0};
    });
    experts_scratch.add(
        [](int64_t rows, int64_t, int64_t hidden, int64_t width, int64_t, Compute, int64_t) {
          return ScratchNeed{static_cast<size_t>(2 * rows * (hidden + width)), 0};
        });
    attention_scratch.add([](const AttentionShape& shape, int64_t tokens, int64_t) {
      return ScratchNeed{static_cast<size_t>(6 * tokens * shape.heads * shape.head_dim), 0};
    });
    cross_entropy_scratch.add([](int64_t, int64_t, int64_t, int64_t) {
      return ScratchNeed{1 << 20, 0};
    });
    sum_squares_scratch.add([](int64_t, int64_t) { return ScratchNeed{4096, 0}; });
    row_scratch.add([](int64_t, int64_t) { return ScratchNeed{4096, 0}; });
  }
  std::string_view name() const override { return "recording"; }
  bool supports(DType, Compute) const override { return true; }
  std::vector<OpLibrary> libraries() const override { return listed; }
  void call_library(const std::string&, bool called) const override { calls_library() = called; }

  std::vector<OpLibrary> listed;  // that it says it found
  /// Whether a library is called now; and whether it fails then.
  static bool& calls_library() {
    static bool one = true;
    return one;
  }
  static bool& library_fails() {
    static bool one = false;
    return one;
  }

 private:
  static void keep(int64_t& most, int64_t now) { most = std::max(most, now); }
  static void work(Stream& stream) {
    if (calls_library() && library_fails()) throw device_error("the library fails");
    enqueue_on_fake_stream(cuda_stream(stream).handle(), [] {});
  }
};

inline const OpSet& recording_ops() {
  static const RecordingOps ops;
  return ops;
}

}  // namespace hearth::test
