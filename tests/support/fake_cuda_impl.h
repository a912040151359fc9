// The state of the fake runtime. Lock `mutex` to use its members.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "support/fake_cuda.h"
#include "support/fake_cuda_memory.h"
#include "support/fake_cuda_queues.h"

namespace hearth::test {

inline constexpr CudaCode kInvalidValue = 1, kInvalidDevice = 101, kInvalidHandle = 400;

struct FakeCuda::Impl {
  explicit Impl(const FakeCudaOptions& o) : options(o) {
    queues.seed = o.seed;
    queues.random.seed(o.seed);
    queues.seconds_per_work = o.seconds_per_work;
    queues.run_work = [this](FakeStream& stream, FakeItem& item) { run(stream, item); };
  }

  size_t taken = 0;  // of each device, by other programs

  // The current device of the calling thread, and the runtime that set it last.
  struct Current {
    uint64_t runtime = 0;
    int device = 0;
  };
  static Current& current() {
    thread_local Current of_thread;
    return of_thread;
  }
  int device() const { return current().runtime == id ? current().device : 0; }

  // Counts a call. Returns the code with which it must fail, or 0.
  CudaCode begin(const std::string& function) {
    ++counts[function];
    const auto planned = planned_calls.find(function);
    if (planned != planned_calls.end() && --planned->second.nth == 0) {
      const CudaCode code = planned->second.code;
      planned_calls.erase(planned);
      return done(code);
    }
    return broken;
  }
  CudaCode done(CudaCode code) {
    if (code != kCudaOk) last_errors[std::this_thread::get_id()] = code;
    return code;
  }

  FakeStream* stream_of(void* handle) {
    for (const auto& stream : queues.streams) {
      if (stream.get() == handle) return stream.get();
    }
    return nullptr;
  }
  FakeEvent* event_of(void* handle) {
    const auto it = events.find(handle);
    return it != events.end() ? it->second.get() : nullptr;
  }

  void queue(FakeStream& stream, std::function<void()> work) {
    FakeItem item;
    item.number = queues.next_number++;
    item.work = std::move(work);
    stream.items.push_back(std::move(item));
  }
  void run(FakeStream& stream, FakeItem& item) {
    if (planned_work.nth > 0 && --planned_work.nth == 0) broken = planned_work.code;
    if (broken != kCudaOk) return;
    std::vector<int> reached = peers[stream.device];
    reached.push_back(stream.device);
    memory.open(reached);
    try {
      item.work();
    } catch (...) {
      memory.close();
      throw;
    }
    memory.close();
    ran.push_back(item.number);
  }
  void drain(int device) {
    for (size_t i = 0; i < queues.streams.size(); ++i) {
      if (queues.streams[i]->device == device) queues.advance(*queues.streams[i], nullptr);
    }
  }
  bool is_pinned(const void* address, size_t bytes) const {
    const auto* at = static_cast<const std::byte*>(address);
    return std::any_of(pinned.begin(), pinned.end(), [&](const auto& range) {
      return at >= range.first && at + bytes <= range.first + range.second;
    });
  }
  // Queues a copy from memory of device b (source) to memory of device a (target); -1: the host.
  CudaCode queue_copy(void* target, int a, const void* source, int b, size_t bytes,
                      FakeStream& stream) {
    if ((a >= 0 && !memory.holds(target, bytes)) || (b >= 0 && !memory.holds(source, bytes))) {
      return kInvalidValue;
    }
    largest_copy = std::max(largest_copy, bytes);
    const bool late_target = a >= 0 || is_pinned(target, bytes);
    const bool late_source = b >= 0 || is_pinned(source, bytes);
    if (!late_target || !late_source) ++unpinned_copies;
    const auto move = [this, target, source, bytes, a, b] {
      // Copies can access both sides, even if kernels cannot.
      std::vector<int> sides;
      if (a >= 0) sides.push_back(a);
      if (b >= 0) sides.push_back(b);
      memory.open(sides);
      std::memcpy(target, source, bytes);
    };
    if (late_source) {
      queue(stream, move);
      if (!late_target) queues.advance(stream, nullptr);
    } else {
      const auto* first = static_cast<const std::byte*>(source);
      queue(stream, [this, target, a, taken = std::vector<std::byte>(first, first + bytes)] {
        if (a >= 0) memory.open({a});
        std::memcpy(target, taken.data(), taken.size());
      });
      if (!late_target) queues.advance(stream, nullptr);
    }
    return broken;
  }

  struct Planned {
    CudaCode code = 0;
    int nth = 0;
  };
  static inline std::atomic<uint64_t> next_id{1};
  const uint64_t id = next_id++;
  const FakeCudaOptions options;
  mutable std::mutex mutex;
  FakeDeviceMemory memory;
  FakeQueues queues;
  std::map<void*, std::unique_ptr<FakeEvent>> events;
  std::map<std::byte*, size_t> pinned;
  std::map<int, std::vector<int>> peers;  // the peers that a device can access
  std::map<std::string, int64_t> counts;
  std::map<std::string, Planned> planned_calls;
  Planned planned_work;
  CudaCode broken = kCudaOk;
  std::map<std::thread::id, CudaCode> last_errors;  // as CUDA: of the thread that called
  size_t largest_copy = 0;
  int64_t unpinned_copies = 0;
  std::vector<int64_t> ran;
};

}  // namespace hearth::test
