#include "device/cuda_device.h"

#include <algorithm>
#include <utility>

#include "base/error_format.h"
#include "base/setting.h"
#include "device/cuda_event.h"
#include "device/cuda_state.h"
#include "device/cuda_stream.h"
#include "topology/memory_binding.h"

namespace hearth {
namespace {

// Small enough that a copy of another stream waits well below a millisecond, large enough that the
// link is never idle in between.
constexpr size_t kCopyPiece = size_t{16} << 20;

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(const CudaStateParts& parts) : state_(std::make_shared<CudaState>(parts)) {}

  const std::string& name() const override { return state_->name(); }
  const std::string& identity() const override { return state_->parts().identity; }
  bool has_own_clock() const override { return true; }
  std::vector<MemorySpace> spaces() const override {
    const CudaStateParts& parts = state_->parts();
    std::vector<MemorySpace> spaces{{SpaceKind::device, 0, parts.budget->bytes()}};
    const uint64_t pinned = parts.pinned_budget ? parts.pinned_budget->bytes() : UINT64_MAX;
    spaces.push_back({SpaceKind::pinned, std::max(parts.node, 0), pinned});
    return spaces;
  }
  bool host_reaches() const override { return false; }
  std::optional<uint64_t> free_bytes() override {
    size_t free = 0, total = 0;
    state_->call("cudaMemGetInfo", &CudaCalls::memory_info, &free, &total);
    return free;
  }

  std::unique_ptr<Arena> reserve(const std::string& arena, SpaceKind space, size_t bytes) override {
    HEARTH_CHECK(space != SpaceKind::host, "cuda device: host memory of it is pinned");
    return space == SpaceKind::device ? state_->reserve_device(arena, bytes)
                                      : state_->reserve_pinned(arena, bytes);
  }
  std::shared_ptr<void> pin(void* memory, size_t bytes) override {
    return state_->pin(memory, bytes);
  }
  std::unique_ptr<Stream> create_stream(const StreamOptions& options) override {
    return std::make_unique<CudaStream>(state_, options);
  }
  std::unique_ptr<Event> create_event(bool timed) override {
    return std::make_unique<CudaEvent>(state_, timed);
  }

  void record(Event& event, Stream& stream) override {
    own_event(event).record(own_handle(stream));
  }
  void wait(Stream& stream, Event& event) override {
    auto* cuda = dynamic_cast<CudaEvent*>(&event);
    if (cuda == nullptr) return event.synchronize();
    void* recorded = cuda->recorded();
    state_->call("cudaStreamWaitEvent", &CudaCalls::stream_wait_event, own_handle(stream),
                 recorded);
  }
  double seconds_between(Event& begin, Event& end) override {
    CudaEvent& from = own_event(begin);
    CudaEvent& to = own_event(end);
    HEARTH_CHECK(from.timed() && to.timed(), "times of events that take none");
    from.synchronize();
    to.synchronize();
    float milliseconds = 0;
    state_->call("cudaEventElapsedTime", &CudaCalls::event_elapsed, &milliseconds, from.recorded(),
                 to.recorded());
    return 1e-3 * static_cast<double>(milliseconds);
  }

  void copy(Stream& stream, void* target, const void* source, size_t bytes) override {
    void* handle = own_handle(stream);
    const int to_device = state_->parts().map->owner(target, bytes);
    const int from_device = state_->parts().map->owner(source, bytes);
    const bool peers = to_device >= 0 && from_device >= 0 && to_device != from_device;
    auto* to = static_cast<std::byte*>(target);
    const auto* from = static_cast<const std::byte*>(source);
    for (size_t begin = 0; begin < bytes; begin += kCopyPiece) {
      const size_t n = std::min(kCopyPiece, bytes - begin);
      void* piece = to + begin;
      const void* piece_source = from + begin;
      if (peers) {
        // Over the link between the two, or through the host where there is none.
        state_->call("cudaMemcpyPeerAsync", &CudaCalls::copy_peer, piece, to_device, piece_source,
                     from_device, n, handle);
      } else {
        state_->call("cudaMemcpyAsync", &CudaCalls::copy, piece, piece_source, n, handle);
      }
    }
  }
  void fill(Stream& stream, void* target, std::byte value, size_t bytes) override {
    if (bytes == 0) return;
    state_->call("cudaMemsetAsync", &CudaCalls::fill, target, std::to_integer<int>(value), bytes,
                 own_handle(stream));
  }
  void check() override { state_->call("an earlier operation", &CudaCalls::get_last_error); }
  void fail(Event& event, std::exception_ptr error) override {
    own_event(event).fail(std::move(error));
  }

 private:
  CudaEvent& own_event(Event& event) const {
    auto* cuda = dynamic_cast<CudaEvent*>(&event);
    HEARTH_CHECK(cuda != nullptr && &cuda->device() == state_.get(),
                 "a cuda device with an event of another device");
    return *cuda;
  }
  void* own_handle(Stream& stream) const {
    CudaStream& cuda = cuda_stream(stream);
    HEARTH_CHECK(&cuda.device() == state_.get(), "a cuda device with a stream of another device");
    return cuda.handle();
  }

  std::shared_ptr<CudaState> state_;
};

// Raises for calls that belong to no device's state yet.
void require(CudaCalls& calls, int device, const char* label, CudaCode code) {
  if (code == kCudaOk) return;
  throw device_error("cuda:{}: {}: {} ({})", device, label, calls.error_text(code), code);
}

// Lets `device` reach the memory of `peer`; false where the hardware cannot.
bool connect(CudaCalls& calls, int device, int peer) {
  int can = 0;
  require(calls, device, "cudaDeviceCanAccessPeer", calls.can_access_peer(&can, device, peer));
  if (can == 0) return false;
  require(calls, device, "cudaSetDevice", calls.set_device(device));
  const CudaCode code = calls.enable_peer_access(peer);
  if (code == kCudaPeerAlreadyEnabled) {
    calls.get_last_error();
  } else {
    require(calls, device, "cudaDeviceEnablePeerAccess", code);
  }
  return true;
}

void check_numbers(CudaCalls& calls, std::span<const CudaDeviceOptions> options) {
  int count = 0;
  const CudaCode code = calls.device_count(&count);
  if (code != kCudaOk) {
    throw device_error("cuda: cudaGetDeviceCount: {} ({})", calls.error_text(code), code);
  }
  for (size_t i = 0; i < options.size(); ++i) {
    const int number = options[i].number;
    const std::string name = "cuda:" + std::to_string(number);
    if (number < 0 || number >= count) {
      throw usage_error("{}: there is no {}; this machine has {} {}", spelled(Setting::devices),
                        name, count, count == 1 ? "GPU" : "GPUs");
    }
    for (size_t k = 0; k < i; ++k) {
      if (options[k].number == number)
        throw usage_error("{}: {} twice; name it once", spelled(Setting::devices), name);
    }
  }
}

}  // namespace

uint64_t default_gpu_budget(uint64_t memory_bytes) {
  constexpr uint64_t least = uint64_t{512} << 20;
  return memory_bytes - std::min(memory_bytes, std::max(memory_bytes / 20, least));
}

CudaDevices make_cuda_devices(CudaCalls& calls, std::span<const CudaDeviceOptions> options) {
  check_numbers(calls, options);
  std::vector<int> numbers;
  for (const CudaDeviceOptions& o : options) numbers.push_back(o.number);
  const auto map = std::make_shared<MemoryMap>();

  CudaDevices result;
  for (const CudaDeviceOptions& o : options) {
    const std::string name = "cuda:" + std::to_string(o.number);
    CudaDeviceInfo info;
    require(calls, o.number, "cudaGetDeviceProperties", calls.device_info(o.number, &info));
    if (o.budget > info.memory_bytes) {
      throw usage_error("{}: {} bytes, but {} has {}; ask for less", spelled(Setting::gpu_memory),
                        o.budget, name, info.memory_bytes);
    }
    std::string driver;
    require(calls, o.number, "cudaDriverGetVersion", calls.driver_version(&driver));
    require(calls, o.number, "cudaInitDevice", calls.start_device(o.number));
    const uint64_t budget = o.budget > 0 ? o.budget : default_gpu_budget(info.memory_bytes);
    result.devices.push_back(std::make_unique<CudaDevice>(CudaStateParts{
        calls, o.number, numa_node_of_pci(info.bus_id),
        std::make_shared<Budget>(name, "raise " + spelled(Setting::gpu_memory), budget), o.pinned,
        map, numbers,
        fmt::format("{}, compute capability {}.{}, {}", info.model, info.major, info.minor,
                    driver)}));
  }
  for (size_t i = 0; i < numbers.size(); ++i) {
    for (size_t k = i + 1; k < numbers.size(); ++k) {
      const bool there = connect(calls, numbers[i], numbers[k]);
      const bool back = connect(calls, numbers[k], numbers[i]);
      if (there && back) continue;
      result.notes.push_back(fmt::format(
          "cuda:{} and cuda:{} cannot copy to each other directly: copies between them go "
          "through the host",
          numbers[i], numbers[k]));
    }
  }
  return result;
}

}  // namespace hearth
