#include "runtime/trial.h"

#include <algorithm>

#include "base/random.h"

namespace hearth {
namespace {

constexpr size_t kStaging = size_t{1} << 20;

}  // namespace

Trial::Trial(Device& device, ScratchNeed need) : device_(device) {
  StreamOptions options;
  options.name = "check";
  options.scratch_bytes = need.shared;
  options.worker_scratch_bytes = need.per_worker;
  stream_ = device.create_stream(options);
  staging_ = device.reserve("check", space(SpaceKind::pinned), kStaging);
}

View Trial::random(DType type, int64_t rows, int64_t cols, double scale) {
  const Random numbers(1, RandomSite::init, next_++);
  std::vector<float> values(static_cast<size_t>(rows * cols));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(scale * (2 * numbers.uniform(i) - 1));
  }
  std::vector<std::byte> stored(values.size() * size_of(type));
  convert(DType::f32, values.data(), type, stored.data(), rows * cols);
  return {write(stored.data(), stored.size()), type, rows, cols};
}

View Trial::integers(const std::vector<int32_t>& values) {
  return {write(values.data(), values.size() * sizeof(int32_t)), DType::i32, 1,
          static_cast<int64_t>(values.size())};
}

View Trial::output(int64_t rows, int64_t cols) {
  std::byte* const data = reserve(static_cast<size_t>(rows * cols) * sizeof(float));
  return outputs_.emplace_back(data, DType::f32, rows, cols);
}

Trial::Results Trial::run(const std::function<void(Stream&)>& problem) {
  for (const View& out : outputs_) device_.fill(*stream_, out.raw(), std::byte{0}, out.bytes());
  problem(*stream_);
  stream_->synchronize();
  device_.check();
  Results results;
  for (const View& out : outputs_) {
    auto& values = results.emplace_back(static_cast<size_t>(out.size()));
    read(values.data(), out.data, out.bytes());
  }
  return results;
}

SpaceKind Trial::space(SpaceKind wanted) const {
  const std::vector<MemorySpace> spaces = device_.spaces();
  const bool there = std::any_of(spaces.begin(), spaces.end(),
                                 [&](const MemorySpace& s) { return s.kind == wanted; });
  return there ? wanted : spaces.front().kind;
}

std::byte* Trial::reserve(size_t bytes) {
  // Aligned no better than the tensors of a run, which lie one after the other in an arena.
  arenas_.push_back(device_.reserve("check", space(SpaceKind::device), bytes + kArenaAlignment));
  return arenas_.back()->data() + kArenaAlignment;
}

std::byte* Trial::write(const void* source, size_t bytes) {
  std::byte* const target = reserve(bytes);
  const auto* const from = static_cast<const std::byte*>(source);
  for (size_t at = 0; at < bytes; at += kStaging) {
    const size_t n = std::min(kStaging, bytes - at);
    std::copy_n(from + at, n, staging_->data());
    device_.copy(*stream_, target + at, staging_->data(), n);
    stream_->synchronize();
  }
  return target;
}

void Trial::read(void* target, const void* source, size_t bytes) {
  const auto* const from = static_cast<const std::byte*>(source);
  for (size_t at = 0; at < bytes; at += kStaging) {
    const size_t n = std::min(kStaging, bytes - at);
    device_.copy(*stream_, staging_->data(), from + at, n);
    stream_->synchronize();
    std::copy_n(staging_->data(), n, static_cast<std::byte*>(target) + at);
  }
}

}  // namespace hearth
