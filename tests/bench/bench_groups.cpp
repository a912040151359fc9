// bench_groups [workers] [hidden] [width] [experts] [choices] [micro-batches] [least tokens]
// [most tokens]: a layer's routed experts over a group of micro-batches in one call, beside a call per
// micro-batch. Both with dispatch and combine, which a group also moves apart from the experts. The
// two take turns (ABBA), so that what else runs on the machine hits both. docs/benchmarks/devices.md
// keeps a run.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "cpu_kernels/cpu_ops.h"
#include "device/host_device.h"
#include "machine_rates.h"

using namespace hearth;
using namespace hearth::bench;

namespace {

constexpr int kPairs = 6;
constexpr int64_t kRank = 16;

struct Sizes {
  int64_t hidden, width, experts, choices, micro_batches;
};

struct Kind {
  bool lora;
  Compute compute;
};

/// Memory of numbers; `n` elements.
class Numbers {
 public:
  View f32(int64_t rows, int64_t cols) {
    const View v(take(4 * rows * cols), DType::f32, rows, cols);
    for (int64_t i = 0; i < v.size(); ++i) {
      v.as<float>()[i] = static_cast<float>(i * 7919 % 1009 - 504) * 1e-4f;
    }
    return v;
  }
  View bf16(int64_t rows, int64_t cols) {
    const View v(take(2 * rows * cols), DType::bf16, rows, cols);
    for (int64_t i = 0; i < v.size(); ++i) {
      static_cast<uint16_t*>(v.raw())[i] =
          static_cast<uint16_t>(0x3c00 + i * 31 % 256 + (i % 2 << 15));
    }
    return v;
  }
  View i32(int64_t rows, int64_t cols) { return {take(4 * rows * cols), DType::i32, rows, cols}; }

 private:
  std::byte* take(int64_t bytes) {
    return owned_.emplace_back("numbers", static_cast<size_t>(bytes)).data();
  }
  std::vector<Arena> owned_;
};

/// The values of a group, each micro-batch's behind the one before, and the experts.
class Group {
 public:
  Group(int workers, const Sizes& sizes, int64_t tokens, Kind kind)
      : ops_(cpu_ops()), of_(sizes), tokens_(tokens), rows_(tokens * sizes.choices) {
    const int64_t all = of_.micro_batches * rows_, count = of_.micro_batches * of_.experts;
    ScratchNeed need =
        ops_.experts_scratch(all, count, of_.hidden, of_.width, kind.lora ? kRank : 0,
                             Compute::bf16, of_.micro_batches * tokens_);
    need = max_of(need, ops_.row_scratch(tokens_ * of_.choices, std::max(of_.hidden, of_.experts)));
    StreamOptions options;
    options.workers = workers;
    options.scratch_bytes = need.shared;
    options.worker_scratch_bytes = need.per_worker;
    device_ = make_host_device(uint64_t{64} << 30);
    stream_ = device_->create_stream(options);
    for (int64_t e = 0; e < of_.experts; ++e) add_expert(kind);
    const int64_t t = of_.micro_batches * tokens_;
    x_ = numbers_.f32(t, of_.hidden), y_ = numbers_.f32(t, of_.hidden);
    in_ = numbers_.f32(all, of_.hidden), out_ = numbers_.f32(all, of_.hidden);
    gate_ = numbers_.f32(all, of_.width), up_ = numbers_.f32(all, of_.width);
    weight_ = numbers_.f32(t, of_.choices), row_weight_ = numbers_.f32(1, all);
    d_weight_ = numbers_.f32(1, all);
    offsets_ = numbers_.i32(of_.micro_batches, of_.experts + 1);
    source_ = numbers_.i32(of_.micro_batches, rows_);
    row_of_ = numbers_.i32(t, of_.choices);
    route();
  }

  /// Forward and backward of all micro-batches, `each` of them in a call of the experts.
  double seconds(int64_t each) {
    const auto begin = std::chrono::steady_clock::now();
    for (const bool backward : {false, true}) {
      for (int64_t m = 0; m < of_.micro_batches; m += each) {
        for (int64_t i = m; i < m + each; ++i) dispatch(i);
        experts(m, each, backward);
        for (int64_t i = m; i < m + each; ++i) combine(i);
      }
    }
    stream_->synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  void add_expert(Kind kind) {
    ExpertView& view = experts_.emplace_back();
    ExpertGradient& gradient = gradients_.emplace_back();
    const auto add = [&](LinearView& map, LinearGradient& to, int64_t out, int64_t in) {
      map.compute = kind.compute;
      map.weight = kind.compute == Compute::bf16 ? numbers_.bf16(out, in) : numbers_.f32(out, in);
      if (!kind.lora) {
        to.weight = numbers_.f32(out, in);
        return;
      }
      map.low_rank = {numbers_.f32(kRank, in), numbers_.f32(out, kRank), 1.0, {}};
      to.a = numbers_.f32(kRank, in), to.b = numbers_.f32(out, kRank);
    };
    add(view.gate, gradient.gate, of_.width, of_.hidden);
    add(view.up, gradient.up, of_.width, of_.hidden);
    add(view.down, gradient.down, of_.hidden, of_.width);
  }

  /// Each token chooses neighbours, from a place that looks random.
  void route() {
    const View choice = numbers_.i32(tokens_, of_.choices);
    uint64_t state = 1;
    for (int64_t m = 0; m < of_.micro_batches; ++m) {
      for (int64_t t = 0; t < tokens_; ++t) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const auto first = static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(of_.experts));
        for (int64_t j = 0; j < of_.choices; ++j) {
          choice.row<int32_t>(t)[j] = static_cast<int32_t>((first + j * 5) % of_.experts);
        }
      }
      ops_.route(*stream_, choice, offsets_.slice(m, 1), source_.slice(m, 1),
                 tokens_of(row_of_, m));
      stream_->synchronize();
    }
  }

  View tokens_of(const View& v, int64_t m) const { return v.slice(m * tokens_, tokens_); }
  View rows_of(const View& v, int64_t m, int64_t count = 1) const {
    return v.slice(m * rows_, count * rows_);
  }
  View row_of(const View& v, int64_t m, int64_t count = 1) const {
    return {v.as<float>() + m * rows_, DType::f32, 1, count * rows_};
  }
  RoutingView routing(int64_t m) const {
    return {offsets_.slice(m, 1), source_.slice(m, 1), tokens_of(row_of_, m)};
  }

  void dispatch(int64_t m) {
    ops_.permute(*stream_, tokens_of(x_, m), routing(m), rows_of(in_, m));
  }
  void combine(int64_t m) {
    ops_.combine(*stream_, rows_of(out_, m), routing(m), tokens_of(weight_, m), tokens_of(x_, m),
                 tokens_of(y_, m));
  }
  void experts(int64_t m, int64_t count, bool backward) {
    const ExpertRows rows = count == 1 ? ExpertRows(offsets_.slice(m, 1))
                                       : ExpertRows::apart(offsets_.slice(m, count), rows_);
    const View in = rows_of(in_, m, count), out = rows_of(out_, m, count),
               gate = rows_of(gate_, m, count), up = rows_of(up_, m, count);
    if (backward) {
      ops_.experts_backward(*stream_, in, row_of(row_weight_, m, count), in, rows, experts_, gate,
                            up, out, row_of(d_weight_, m, count), gradients_);
    } else {
      ops_.experts_forward(*stream_, in, rows, experts_, gate, up, out);
    }
  }

  const OpSet& ops_;
  Sizes of_;
  int64_t tokens_, rows_;  // of a micro-batch
  Numbers numbers_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::vector<ExpertView> experts_;
  std::vector<ExpertGradient> gradients_;
  View x_, y_, in_, out_, gate_, up_, weight_, row_weight_, d_weight_, offsets_, source_, row_of_;
};

void compare(int workers, const Sizes& sizes, int64_t tokens, Kind kind) {
  Group group(workers, sizes, tokens, kind);
  const int64_t all = sizes.micro_batches;
  group.seconds(1), group.seconds(all);
  std::vector<double> ratios;  // of a pair of pairs
  double apart = 1e30, together = 1e30;
  for (int i = 0; i < kPairs; ++i) {
    const double a = group.seconds(1), b = group.seconds(all), c = group.seconds(all),
                 d = group.seconds(1);
    ratios.push_back((b + c) / (a + d));
    apart = std::min({apart, a, d}), together = std::min({together, b, c});
  }
  std::sort(ratios.begin(), ratios.end());
  std::printf(
      "%-5s %-5s %6lld %7.1f %9.2f %9.2f   %5.3f  %5.3f to %5.3f\n", kind.lora ? "lora" : "full",
      kind.compute == Compute::bf16 ? "bf16" : "f32", static_cast<long long>(tokens),
      static_cast<double>(tokens * sizes.choices) / static_cast<double>(sizes.experts), apart * 1e3,
      together * 1e3, ratios[ratios.size() / 2], ratios.front(), ratios.back());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const auto workers =
      static_cast<int>(argument(argc, argv, 1, std::thread::hardware_concurrency()));
  const Sizes sizes{argument(argc, argv, 2, 1024), argument(argc, argv, 3, 512),
                    argument(argc, argv, 4, 32), argument(argc, argv, 5, 4),
                    argument(argc, argv, 6, 8)};
  const int64_t least = argument(argc, argv, 7, 16), most = argument(argc, argv, 8, 1024);
  std::printf(
      "%d workers; hidden %lld, width %lld, %lld experts, %lld of a token, groups of %lld\n",
      workers, static_cast<long long>(sizes.hidden), static_cast<long long>(sizes.width),
      static_cast<long long>(sizes.experts), static_cast<long long>(sizes.choices),
      static_cast<long long>(sizes.micro_batches));
  std::printf("%-5s %-5s %6s %7s %9s %9s   %5s  %s\n", "kind", "type", "tokens", "rows", "apart ms",
              "group ms", "ratio", "least to most");
  for (int64_t tokens = least; tokens <= most; tokens *= 4) {
    for (const bool lora : {false, true}) {
      for (const Compute compute : {Compute::f32, Compute::bf16}) {
        compare(workers, sizes, tokens, {lora, compute});
      }
    }
  }
  return 0;
}
