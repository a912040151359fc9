#include "runtime/rate_bench.h"

#include <algorithm>
#include <span>

#include "base/pool.h"
#include "base/stopwatch.h"
#include "runtime/bench_memory.h"

namespace hearth {

namespace {

// A device's clock has steps of about half a microsecond. Work is repeated until it takes longer.
constexpr double kTick = 5e-7, kLeastTimed = 1e-3, kMostTimes = 20;

}  // namespace

RateBench::RateBench(Device& device, const RateOptions& options, ScratchNeed need)
    : device_(device) {
  StreamOptions stream;
  stream.name = "measurement";
  stream.workers = options.workers;
  stream.cores = options.cores;
  stream.scratch_bytes = need.shared;
  stream.worker_scratch_bytes = need.per_worker;
  stream_ = device.create_stream(stream);
}

RateBench::~RateBench() { unbind_thread(); }

View RateBench::matrix(DType type, int64_t rows, int64_t cols) {
  const auto bytes = static_cast<size_t>(rows * cols) * size_of(type);
  std::byte* data = reserve(bytes);
  fill_small(device_, *stream_, data, bytes, type);
  return {data, type, rows, cols};
}

View RateBench::positive(int64_t rows, int64_t cols) {
  const auto bytes = static_cast<size_t>(rows * cols) * size_of(DType::f32);
  std::byte* data = reserve(bytes);
  fill_positive(device_, *stream_, data, bytes);
  return {data, DType::f32, rows, cols};
}

View RateBench::integers(const std::vector<int32_t>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  std::byte* data = reserve(bytes.size());  // zeroed
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != std::byte{0}) fill(data + i, bytes[i], 1);
  }
  return {data, DType::i32, 1, static_cast<int64_t>(values.size())};
}

double RateBench::shortest(const std::function<void()>& f) {
  return device_.has_own_clock() ? by_device_clock(f) : by_host_clock(f);
}

double RateBench::by_host_clock(const std::function<void()>& f) {
  double best = 1e30;
  for (int i = 0; i < 2; ++i) {
    stream_->synchronize();
    const Stopwatch watch;
    f();
    stream_->synchronize();
    best = std::min(best, watch.seconds());
  }
  return best;
}

double RateBench::by_device_clock(const std::function<void()>& f) {
  f();  // loads code, and libraries choose their algorithms
  stream_->synchronize();
  const auto begin = device_.create_event(true), end = device_.create_event(true);
  const auto seconds = [&](int times) {
    begin->reset();
    end->reset();
    f();  // keeps the device busy while the host issues the rest
    device_.record(*begin, *stream_);
    for (int i = 0; i < times; ++i) f();
    device_.record(*end, *stream_);
    return device_.seconds_between(*begin, *end) / times;
  };
  const double first = std::max(seconds(1), kTick);
  const int times = static_cast<int>(std::clamp(kLeastTimed / first, 1.0, kMostTimes));
  return std::max(std::min(first, seconds(times)), kTick / times);
}

std::byte* RateBench::reserve(size_t bytes) {
  arenas_.push_back(device_.reserve("measurement", device_.spaces().front().kind, bytes));
  return arenas_.back()->data();
}

void RateBench::fill(std::byte* target, std::byte value, size_t bytes) {
  device_.fill(*stream_, target, value, bytes);
}

}  // namespace hearth
