#include "gpu_bench.h"

#include <algorithm>
#include <cstdio>

#include "base/random.h"

namespace hearth::bench {
namespace {

constexpr int kBatches = 5;
constexpr double kBatchSeconds = 0.02;

}  // namespace

GpuBench::GpuBench(const GpuTarget& target, ScratchNeed need) : target_(target) {
  StreamOptions options;
  options.name = "measurement";
  options.scratch_bytes = need.shared;
  options.worker_scratch_bytes = need.per_worker;
  stream_ = target.device.create_stream(options);
  begin_ = target.device.create_event(true);
  end_ = target.device.create_event(true);
}

View GpuBench::random(DType type, int64_t rows, int64_t cols, float scale) {
  // Some numbers, again and again: what they are matters to the power that products take, not where.
  const auto n = static_cast<size_t>(rows * cols), piece = std::min(n, (size_t{1} << 20) - 3);
  const Random numbers(2026, RandomSite::init);
  std::vector<float> values(piece);
  for (size_t i = 0; i < piece; ++i) {
    values[i] = scale * static_cast<float>(2 * numbers.uniform(i) - 1);
  }
  std::vector<std::byte> stored(piece * size_of(type));
  convert(DType::f32, values.data(), type, stored.data(), static_cast<int64_t>(piece));
  std::byte* data = reserve(n * size_of(type));
  for (size_t at = 0; at < n; at += piece) {
    write(data + at * size_of(type), stored.data(), std::min(piece, n - at) * size_of(type));
  }
  return {data, type, rows, cols};
}

View GpuBench::integers(const std::vector<int32_t>& values) {
  std::byte* data = reserve(values.size() * sizeof(int32_t));
  write(data, values.data(), values.size() * sizeof(int32_t));
  return {data, DType::i32, 1, static_cast<int64_t>(values.size())};
}

double GpuBench::seconds(const std::function<void()>& call) {
  const auto batch = [&](int calls) {
    begin_->reset();
    end_->reset();
    target_.device.record(*begin_, *stream_);
    for (int i = 0; i < calls; ++i) call();
    target_.device.record(*end_, *stream_);
    return target_.device.seconds_between(*begin_, *end_) / calls;
  };
  call();
  const double once = batch(1);
  const double wanted = kBatchSeconds / std::max(once, 1e-7);
  const int calls = target_.small ? 1 : static_cast<int>(std::clamp(wanted, 1.0, 1000.0));
  double best = batch(calls);
  for (int i = 1; i < (target_.small ? 1 : kBatches); ++i) best = std::min(best, batch(calls));
  return best;
}

void GpuBench::report_bytes(const std::string& name, const std::string& shape, double bytes,
                            const std::function<void()>& call) {
  const double time = seconds(call), rate = bytes / time;
  std::printf(
      "{\"measurement\": \"%s\", \"shape\": \"%s\", \"seconds\": %.4g, \"bytes\": %.0f, "
      "\"gb_per_second\": %.1f, \"share_of_copy\": %.3f}\n",
      name.c_str(), shape.c_str(), time, bytes, rate / 1e9,
      target_.copy_rate > 0 ? rate / target_.copy_rate : 1.0);
  std::fflush(stdout);
}

void GpuBench::report_flops(const std::string& name, const std::string& shape, double flops,
                            const std::function<void()>& call) {
  const double time = seconds(call);
  std::printf(
      "{\"measurement\": \"%s\", \"shape\": \"%s\", \"seconds\": %.4g, \"flops\": %.4g, "
      "\"tflops_per_second\": %.2f}\n",
      name.c_str(), shape.c_str(), time, flops, flops / time / 1e12);
  std::fflush(stdout);
}

std::byte* GpuBench::reserve(size_t bytes) {
  const auto spaces = target_.device.spaces();
  const auto space = std::find_if(spaces.begin(), spaces.end(),
                                  [](const MemorySpace& s) { return s.kind == SpaceKind::device; });
  const SpaceKind kind = space == spaces.end() ? spaces.front().kind : space->kind;
  arenas_.push_back(target_.device.reserve("measurement", kind, std::max<size_t>(bytes, 64)));
  return arenas_.back()->data();
}

void GpuBench::write(std::byte* target, const void* source, size_t bytes) {
  target_.device.copy(*stream_, target, source, bytes);
  stream_->synchronize();
}

double measure_copy(const GpuTarget& target) {
  GpuBench bench(target, {});
  const int64_t n = (target.small ? int64_t{1} : int64_t{1024}) << 18;  // f32: 1 MiB, 1 GiB
  const View from = bench.random(DType::f32, 1, n), to = bench.random(DType::f32, 1, n);
  const auto copy = [&] { target.device.copy(bench.stream(), to.raw(), from.data, from.bytes()); };
  const double bytes = 2.0 * static_cast<double>(from.bytes());
  const double rate = bytes / bench.seconds(copy);
  bench.report_bytes("copy", shape_text({n}), bytes, copy);
  return rate;
}

std::string shape_text(std::initializer_list<int64_t> sizes) {
  std::string text;
  for (const int64_t size : sizes) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

}  // namespace hearth::bench
