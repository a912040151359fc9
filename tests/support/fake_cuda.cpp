#include "support/fake_cuda.h"

#include "support/fake_cuda_impl.h"

namespace hearth::test {
namespace {

constexpr CudaCode kAlreadyPinned = 712, kNotPinned = 713, kPeerNotPossible = 217;

}  // namespace

FakeCuda::FakeCuda(const FakeCudaOptions& options) : impl_(std::make_unique<Impl>(options)) {}
FakeCuda::~FakeCuda() = default;

int64_t FakeCuda::count(const std::string& function) const {
  const std::lock_guard lock(impl_->mutex);
  const auto it = impl_->counts.find(function);
  return it != impl_->counts.end() ? it->second : 0;
}

void FakeCuda::fail_call(const std::string& function, CudaCode code, int nth) {
  const std::lock_guard lock(impl_->mutex);
  impl_->planned_calls[function] = {code, nth};
}

void FakeCuda::fail_work(CudaCode code, int nth) {
  const std::lock_guard lock(impl_->mutex);
  impl_->planned_work = {code, nth};
}

size_t FakeCuda::largest_copy() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->largest_copy;
}

int64_t FakeCuda::unpinned_copies() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->unpinned_copies;
}

void FakeCuda::take_memory(size_t bytes) {
  const std::lock_guard lock(impl_->mutex);
  impl_->taken = bytes;
}

size_t FakeCuda::device_bytes(int device) const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->memory.bytes_of(device);
}

size_t FakeCuda::pinned_bytes() const {
  const std::lock_guard lock(impl_->mutex);
  size_t sum = 0;
  for (const auto& [address, bytes] : impl_->pinned) sum += bytes;
  return sum;
}

int64_t FakeCuda::live_handles() const {
  const std::lock_guard lock(impl_->mutex);
  return static_cast<int64_t>(impl_->queues.streams.size() + impl_->events.size());
}

size_t FakeCuda::waiting() const {
  const std::lock_guard lock(impl_->mutex);
  size_t sum = 0;
  for (const auto& stream : impl_->queues.streams) {
    for (const FakeItem& item : stream->items) sum += item.work ? 1 : 0;
  }
  return sum;
}

std::vector<int64_t> FakeCuda::ran() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->ran;
}

std::string FakeCuda::error_text(CudaCode code) { return "fake error " + std::to_string(code); }

CudaCode FakeCuda::get_last_error() {
  const std::lock_guard lock(impl_->mutex);
  ++impl_->counts["get_last_error"];
  const CudaCode last = std::exchange(impl_->last_errors[std::this_thread::get_id()], kCudaOk);
  return impl_->broken != kCudaOk ? impl_->broken : last;
}

CudaCode FakeCuda::device_count(int* count) {
  const std::lock_guard lock(impl_->mutex);
  if (const CudaCode code = impl_->begin("device_count")) return code;
  *count = impl_->options.devices;
  return kCudaOk;
}

CudaCode FakeCuda::device_info(int device, CudaDeviceInfo* info) {
  const std::lock_guard lock(impl_->mutex);
  if (const CudaCode code = impl_->begin("device_info")) return code;
  if (device < 0 || device >= impl_->options.devices) return impl_->done(kInvalidDevice);
  const std::vector<std::string>& ids = impl_->options.bus_ids;
  const auto at = static_cast<size_t>(device);
  *info = {"fake GPU",
           at < ids.size() ? ids[at] : "ffff:ff:1f.0",
           impl_->options.major,
           impl_->options.minor,
           4,
           size_t{227} << 10,
           impl_->options.memory_bytes};
  return kCudaOk;
}

CudaCode FakeCuda::driver_version(std::string* text) {
  const std::lock_guard lock(impl_->mutex);
  if (const CudaCode code = impl_->begin("driver_version")) return code;
  *text = impl_->options.driver;
  return kCudaOk;
}

CudaCode FakeCuda::start_device(int device) {
  const std::lock_guard lock(impl_->mutex);
  if (const CudaCode code = impl_->begin("start_device")) return code;
  return impl_->done(device >= 0 && device < impl_->options.devices ? kCudaOk : kInvalidDevice);
}

CudaCode FakeCuda::set_device(int device) {
  const std::lock_guard lock(impl_->mutex);
  if (const CudaCode code = impl_->begin("set_device")) return code;
  if (device < 0 || device >= impl_->options.devices) return impl_->done(kInvalidDevice);
  Impl::current() = {impl_->id, device};
  return kCudaOk;
}

CudaCode FakeCuda::device_synchronize() {
  const std::lock_guard lock(impl_->mutex);
  if (const CudaCode code = impl_->begin("device_synchronize")) return code;
  impl_->drain(impl_->device());
  return impl_->broken;
}

CudaCode FakeCuda::can_access_peer(int* can, int device, int peer) {
  const std::lock_guard lock(impl_->mutex);
  if (const CudaCode code = impl_->begin("can_access_peer")) return code;
  *can = impl_->options.peer_access && device != peer ? 1 : 0;
  return kCudaOk;
}

CudaCode FakeCuda::enable_peer_access(int peer) {
  const std::lock_guard lock(impl_->mutex);
  if (const CudaCode code = impl_->begin("enable_peer_access")) return code;
  if (!impl_->options.peer_access || peer == impl_->device()) return impl_->done(kPeerNotPossible);
  std::vector<int>& peers = impl_->peers[impl_->device()];
  if (std::find(peers.begin(), peers.end(), peer) != peers.end()) {
    return impl_->done(kCudaPeerAlreadyEnabled);
  }
  peers.push_back(peer);
  return kCudaOk;
}

CudaCode FakeCuda::memory_info(size_t* free, size_t* total) {
  const std::lock_guard lock(impl_->mutex);
  if (const CudaCode code = impl_->begin("memory_info")) return code;
  *total = impl_->options.memory_bytes;
  *free = *total - std::min(*total, impl_->memory.bytes_of(impl_->device()) + impl_->taken);
  return kCudaOk;
}

CudaCode FakeCuda::malloc_device(void** address, size_t bytes) {
  const std::lock_guard lock(impl_->mutex);
  if (const CudaCode code = impl_->begin("malloc_device")) return code;
  const size_t used = impl_->memory.bytes_of(impl_->device()) + impl_->taken;
  if (bytes == 0) return impl_->done(kInvalidValue);
  if (used + bytes > impl_->options.memory_bytes) return impl_->done(kCudaOutOfMemory);
  *address = impl_->memory.allocate(impl_->device(), bytes);
  return impl_->done(*address != nullptr ? kCudaOk : kCudaOutOfMemory);
}

CudaCode FakeCuda::free_device(void* address) {
  const std::lock_guard lock(impl_->mutex);
  const CudaCode code = impl_->begin("free_device");
  impl_->drain(impl_->device());
  if (!impl_->memory.release(address)) return impl_->done(kInvalidValue);
  return code;
}

CudaCode FakeCuda::host_register(void* address, size_t bytes) {
  const std::lock_guard lock(impl_->mutex);
  if (const CudaCode code = impl_->begin("host_register")) return code;
  const bool is_new = impl_->pinned.emplace(static_cast<std::byte*>(address), bytes).second;
  return impl_->done(is_new ? kCudaOk : kAlreadyPinned);
}

CudaCode FakeCuda::host_unregister(void* address) {
  const std::lock_guard lock(impl_->mutex);
  const CudaCode code = impl_->begin("host_unregister");
  if (impl_->pinned.erase(static_cast<std::byte*>(address)) == 0) return impl_->done(kNotPinned);
  return code;
}

}  // namespace hearth::test
