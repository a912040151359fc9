#include "runtime/rate_bench.h"

#include <algorithm>
#include <chrono>

namespace hearth {

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

View RateBench::matrix(DType type, int64_t rows, int64_t cols) {
  return repeated(type, rows, cols,
                  [](size_t i) { return static_cast<float>(i % 101) * 1e-3f - 0.05f; });
}

View RateBench::positive(int64_t rows, int64_t cols) {
  return repeated(DType::f32, rows, cols, [](size_t) { return 1e-4f; });
}

View RateBench::integers(const std::vector<int32_t>& values) {
  std::byte* data = reserve(values.size() * sizeof(int32_t));
  write(data, values.data(), values.size() * sizeof(int32_t));
  return {data, DType::i32, 1, static_cast<int64_t>(values.size())};
}

double RateBench::shortest(const std::function<void()>& f) {
  double best = 1e30;
  for (int i = 0; i < 2; ++i) {
    stream_->synchronize();
    const auto begin = std::chrono::steady_clock::now();
    f();
    stream_->synchronize();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count());
  }
  return best;
}

std::byte* RateBench::reserve(size_t bytes) {
  arenas_.push_back(device_.reserve("measurement", device_.spaces().front().kind, bytes));
  return arenas_.back()->data();
}

void RateBench::write(std::byte* target, const void* source, size_t bytes) {
  device_.copy(*stream_, target, source, bytes);
  stream_->synchronize();
}

View RateBench::repeated(DType type, int64_t rows, int64_t cols, float (*element)(size_t)) {
  const auto n = static_cast<size_t>(rows * cols);
  const size_t piece = std::min<size_t>(n, size_t{101} << 10);
  std::vector<float> values(piece);
  for (size_t i = 0; i < piece; ++i) values[i] = element(i);
  std::vector<std::byte> stored(piece * size_of(type));
  convert(DType::f32, values.data(), type, stored.data(), static_cast<int64_t>(piece));
  std::byte* data = reserve(n * size_of(type));
  for (size_t at = 0; at < n; at += piece) {
    write(data + at * size_of(type), stored.data(), std::min(piece, n - at) * size_of(type));
  }
  return {data, type, rows, cols};
}

}  // namespace hearth
