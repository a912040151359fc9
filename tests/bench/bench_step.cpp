// bench_step [workers] [tokens] [hidden] [experts]: the ops of a step that are not plain products,
// at the sizes of a layer: milliseconds, GB/s of the bytes that must move, and attention's GFLOP/s.
// docs/benchmarks/cpu.md keeps a run.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "cpu_kernels/cpu_ops.h"
#include "device/host_device.h"
#include "machine_rates.h"

using namespace hearth;
using namespace hearth::bench;

namespace {

constexpr double kWindow = 0.25;
constexpr int64_t kSequence = 256, kHeadDim = 64, kChoices = 8, kVocabulary = 8192;

class Bench {
 public:
  Bench(int workers, int64_t tokens, int64_t hidden, int64_t experts)
      : ops_(cpu_ops()), t_(tokens), h_(hidden), e_(experts), heads_(hidden / kHeadDim) {
    ScratchNeed need = ops_.row_scratch(t_ * heads_, std::max(h_, e_));
    need = max_of(need, ops_.attention_scratch(shape(heads_), t_, kSequence));
    need = max_of(need, ops_.cross_entropy_scratch(t_, h_, kVocabulary, 0));
    need = max_of(need, ops_.sum_squares_scratch(1, t_ * h_ * kChoices));
    StreamOptions options;
    options.workers = workers;
    options.scratch_bytes = need.shared;
    options.worker_scratch_bytes = need.per_worker;
    device_ = make_host_device(uint64_t{32} << 30);
    stream_ = device_->create_stream(options);
  }

  void rows() {
    const View x = f32(t_, h_), y = f32(t_, h_), z = f32(t_, h_), w = f32(1, h_), r = f32(1, t_);
    const double row = 4.0 * static_cast<double>(t_ * h_);
    time("rmsnorm forward", 2 * row, [&] { ops_.rmsnorm_forward(*stream_, x, w, 1e-6, y, r); });
    time("rmsnorm backward", 3 * row, [&] { ops_.rmsnorm_backward(*stream_, y, x, w, r, z, w); });
    time("add", 3 * row, [&] { ops_.add(*stream_, x, y, z); });
    const View cosine = f32(kSequence, kHeadDim / 2), sine = f32(kSequence, kHeadDim / 2);
    const View positions = ints(1, t_, [](int64_t i) { return i % kSequence; });
    time("rope", 2 * row, [&] { ops_.rope(*stream_, x, heads_, positions, cosine, sine, false); });
    const View norm = f32(1, kHeadDim), rstd = f32(1, t_ * heads_);
    const View by_head = x.reshape(t_ * heads_, kHeadDim), out = y.reshape(t_ * heads_, kHeadDim);
    time("head norm forward", 2 * row,
         [&] { ops_.rmsnorm_forward(*stream_, by_head, norm, 1e-6, out, rstd); });
    time("head norm backward", 3 * row,
         [&] { ops_.rmsnorm_backward(*stream_, out, by_head, norm, rstd, out, norm); });
    const View ids = ints(1, t_, [](int64_t i) { return i * 7919 % kVocabulary; });
    const View table = f32(kVocabulary, h_);
    time("embedding forward", 2 * row, [&] { ops_.embedding_forward(*stream_, ids, table, y); });
    time("embedding backward", 3 * row,
         [&] { ops_.embedding_backward(*stream_, ids, y, -1, table); });
  }

  void attention(int64_t kv_heads) {
    const View q = f32(t_, h_), k = f32(t_, kv_heads * kHeadDim), v = f32(t_, kv_heads * kHeadDim),
               out = f32(t_, h_), log_sum = f32(t_, heads_), dq = f32(t_, h_),
               dk = f32(t_, kv_heads * kHeadDim), dv = f32(t_, kv_heads * kHeadDim);
    const View at = ints(1, t_ / kSequence + 1, [](int64_t i) { return i * kSequence; });
    const SequenceOffsets offsets{at, at};
    const double pairs = static_cast<double>(t_ * (kSequence + 1)) / 2;
    const double forward = 4.0 * static_cast<double>(h_) * pairs;
    const auto report = [&](const char* name, double flops, const std::function<void()>& call) {
      const double seconds = best_time(host_stream(*stream_), kWindow, call);
      std::printf("%-24s %8.2f ms %8.1f GFLOP/s, %lld key-value heads\n", name, seconds * 1e3,
                  flops / seconds / 1e9, static_cast<long long>(kv_heads));
    };
    report("attention forward", forward, [&] {
      ops_.attention_forward(*stream_, shape(kv_heads), offsets, q, k, v, out, log_sum);
    });
    report("attention backward", 2 * forward, [&] {
      ops_.attention_backward(*stream_, shape(kv_heads), offsets, dq, q, k, v, out, log_sum, dq, dk,
                              dv);
    });
  }

  void routing() {
    const View logits = f32(t_, e_), probs = f32(t_, e_), weight = f32(t_, kChoices),
               dlogits = f32(t_, e_), x = f32(t_, h_), rows = f32(t_ * kChoices, h_);
    const View choice = ints(t_, kChoices, [](int64_t) { return 0; });
    const View offsets = ints(1, e_ + 1, [](int64_t) { return 0; });
    const View source = ints(1, t_ * kChoices, [](int64_t) { return 0; });
    const View row_of = ints(t_, kChoices, [](int64_t) { return 0; });
    const double scores = 4.0 * static_cast<double>(t_ * e_);
    const double row = 4.0 * static_cast<double>(t_ * h_);
    const View counts = f64(1, e_), sums = f64(1, e_);
    time("router forward", 2 * scores,
         [&] { ops_.router_forward(*stream_, logits, true, probs, choice, weight); });
    time("router sums", scores, [&] { ops_.router_sums(*stream_, probs, choice, counts, sums); });
    time("router backward", 2 * scores,
         [&] { ops_.router_backward(*stream_, weight, probs, choice, true, {}, dlogits); });
    time("route", 16.0 * static_cast<double>(t_ * kChoices),
         [&] { ops_.route(*stream_, choice, {}, offsets, source, row_of); });
    const RoutingView routing{offsets, source, row_of};
    time("permute", (1 + kChoices) * row, [&] { ops_.permute(*stream_, x, source, {}, rows); });
    time("combine", (2 + kChoices) * row,
         [&] { ops_.combine(*stream_, rows, routing, weight, x, x); });
    const double wide = 4.0 * static_cast<double>(rows.size());
    const View gate = rows, up = f32(t_ * kChoices, h_), h = f32(t_ * kChoices, h_);
    time("swiglu forward", 3 * wide, [&] { ops_.swiglu_forward(*stream_, gate, up, h); });
    time("swiglu backward", 6 * wide, [&] { ops_.swiglu_backward(*stream_, h, gate, up, h); });
    const ConstView all = up.reshape(1, up.size());
    const View sum = f64(1, 1);
    time("sum of squares", wide, [&] { ops_.sum_squares(*stream_, {&all, 1}, sum); });
  }

  void loss() {
    const View x = f32(t_, h_), dx = f32(t_, h_), w = f32(kVocabulary, h_),
               dw = f32(kVocabulary, h_), loss = f64(1, 1);
    const View labels = ints(1, t_, [](int64_t i) { return i * 7919 % kVocabulary; });
    const double flops = 6.0 * static_cast<double>(t_ * h_ * kVocabulary);
    const double seconds = best_time(host_stream(*stream_), 2 * kWindow, [&] {
      ops_.cross_entropy(*stream_, x, LinearView{w, {}, Compute::f32}, labels, 1e-3, loss, dx,
                         {.weight = dw});
    });
    std::printf("%-24s %8.2f ms %8.1f GFLOP/s\n", "cross-entropy", seconds * 1e3,
                flops / seconds / 1e9);
  }

 private:
  AttentionShape shape(int64_t kv_heads) const { return {heads_, kv_heads, kHeadDim, 0, 0.125}; }
  void time(const char* name, double bytes, const std::function<void()>& call) {
    const double seconds = best_time(host_stream(*stream_), kWindow, call);
    std::printf("%-24s %8.2f ms %8.1f GB/s\n", name, seconds * 1e3, bytes / seconds / 1e9);
    std::fflush(stdout);
  }
  std::byte* memory(int64_t bytes) {
    return owned_.emplace_back("numbers", static_cast<size_t>(bytes)).data();
  }
  View f32(int64_t rows, int64_t cols) {
    const View v(memory(4 * rows * cols), DType::f32, rows, cols);
    for (int64_t i = 0; i < v.size(); ++i) {
      v.as<float>()[i] = static_cast<float>(i * 7919 % 1009 - 504) * 1e-3f;
    }
    return v;
  }
  View f64(int64_t rows, int64_t cols) { return {memory(8 * rows * cols), DType::f64, rows, cols}; }
  View ints(int64_t rows, int64_t cols, const std::function<int64_t(int64_t)>& of) {
    const View v(memory(4 * rows * cols), DType::i32, rows, cols);
    for (int64_t i = 0; i < v.size(); ++i) v.as<int32_t>()[i] = static_cast<int32_t>(of(i));
    return v;
  }

  const OpSet& ops_;
  int64_t t_, h_, e_, heads_;
  std::vector<Arena> owned_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace

int main(int argc, char** argv) {
  const auto workers =
      static_cast<int>(argument(argc, argv, 1, std::thread::hardware_concurrency()));
  const int64_t tokens = argument(argc, argv, 2, 2048), hidden = argument(argc, argv, 3, 1024),
                experts = argument(argc, argv, 4, 128);
  std::printf("%d workers, %lld tokens in sequences of %lld, hidden %lld, %lld experts\n", workers,
              static_cast<long long>(tokens), static_cast<long long>(kSequence),
              static_cast<long long>(hidden), static_cast<long long>(experts));
  Bench bench(workers, tokens, hidden, experts);
  bench.rows();
  bench.attention(hidden / kHeadDim);
  bench.attention(std::max<int64_t>(1, hidden / kHeadDim / 4));
  bench.routing();
  bench.loss();
}
