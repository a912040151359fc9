#include "device/cuda_state.h"

#include <utility>

#include "base/error_format.h"
#include "topology/memory_binding.h"

namespace hearth {

CudaState::CudaState(const CudaStateParts& parts)
    : parts_(parts), name_("cuda:" + std::to_string(parts.number)) {
  call("cudaStreamCreateWithPriority", &CudaCalls::stream_create, &service_, 0);
}

CudaState::~CudaState() { release(&CudaCalls::stream_destroy, service_); }

void CudaState::enter() {
  {
    const std::lock_guard lock(mutex_);
    if (error_) throw device_error(*error_);
  }
  check("cudaSetDevice", parts_.calls.set_device(parts_.number));
}

void CudaState::check(const char* label, CudaCode code) {
  if (code == kCudaOk) return;
  const std::lock_guard lock(mutex_);
  if (!error_) {
    error_ = name_ + ": " + label + ": " + parts_.calls.error_text(code) + " (" +
             std::to_string(code) + ")";
  }
  throw device_error(*error_);
}

bool CudaState::has_reached(void* event) {
  enter();
  const CudaCode code = parts_.calls.event_query(event);
  if (code == kCudaNotReady) {
    parts_.calls.get_last_error();  // it is no error
    return false;
  }
  check("cudaEventQuery", code);
  return true;
}

// Copies of any device may still be on their way where an error has ended the work early.
void CudaState::unpin(void* memory) noexcept {
  for (const int device : parts_.devices) {
    parts_.calls.set_device(device);
    parts_.calls.device_synchronize();
  }
  release(&CudaCalls::host_unregister, memory);
}

std::shared_ptr<void> CudaState::pin(void* memory, size_t bytes) {
  enter();
  const CudaCode code = parts_.calls.host_register(memory, bytes);
  if (code == kCudaOutOfMemory || code == kCudaNotSupported) {  // the device is as it was
    parts_.calls.get_last_error();
    return nullptr;
  }
  check("cudaHostRegister", code);
  return {memory, [state = shared_from_this()](void* pinned) { state->unpin(pinned); }};
}

// Too little memory leaves the device as it was: an error of this request alone.
void CudaState::refuse_memory(const std::string& what) {
  parts_.calls.get_last_error();
  size_t free = 0, total = 0;
  call("cudaMemGetInfo", &CudaCalls::memory_info, &free, &total);
  throw device_error(
      "{}: {}: out of memory; {} of {} bytes of the GPU are free, other programs may use the rest",
      name_, what, free, total);
}

std::unique_ptr<Arena> CudaState::reserve_device(const std::string& name, size_t bytes) {
  std::shared_ptr<void> claim = parts_.budget->claim(name, bytes);
  if (bytes == 0) return std::make_unique<Arena>(name, nullptr, 0, std::move(claim));

  struct Memory {
    std::shared_ptr<CudaState> state;
    std::shared_ptr<void> claim;
    void* address = nullptr;
    Memory(std::shared_ptr<CudaState> s, std::shared_ptr<void> c)
        : state(std::move(s)), claim(std::move(c)) {}
    ~Memory() {
      if (address == nullptr) return;
      state->parts_.map->remove(address);
      state->release(&CudaCalls::free_device, address);  // after all work that is enqueued
    }
  };
  const auto memory = std::make_shared<Memory>(shared_from_this(), std::move(claim));
  enter();
  const CudaCode code = parts_.calls.malloc_device(&memory->address, bytes);
  if (code == kCudaOutOfMemory) refuse_memory(name + " needs " + std::to_string(bytes) + " bytes");
  check("cudaMalloc", code);
  parts_.map->add(memory->address, bytes, parts_.number);
  call("cudaMemsetAsync", &CudaCalls::fill, memory->address, 0, bytes, service_);
  call("cudaStreamSynchronize", &CudaCalls::stream_synchronize, service_);
  return std::make_unique<Arena>(name, static_cast<std::byte*>(memory->address), bytes, memory);
}

std::unique_ptr<Arena> CudaState::reserve_pinned(const std::string& name, size_t bytes) {
  std::shared_ptr<void> claim;
  if (parts_.pinned_budget) claim = parts_.pinned_budget->claim(name, bytes);
  if (bytes == 0) return std::make_unique<Arena>(name, nullptr, 0, std::move(claim));

  struct Memory {
    std::shared_ptr<CudaState> state;
    Arena pages;
    bool registered = false;
    Memory(std::shared_ptr<CudaState> s, Arena p) : state(std::move(s)), pages(std::move(p)) {}
    ~Memory() {
      if (registered) state->unpin(pages.data());
    }
  };
  const auto memory =
      std::make_shared<Memory>(shared_from_this(), Arena(name, bytes, std::move(claim)));
  // A wish: memory of another node works as well, only slower.
  if (parts_.node >= 0) bind_memory(memory->pages.data(), bytes, parts_.node);
  enter();
  const CudaCode code = parts_.calls.host_register(static_cast<void*>(memory->pages.data()), bytes);
  if (code == kCudaOutOfMemory) {
    parts_.calls.get_last_error();
    throw device_error("{}: {}: the system cannot pin {} bytes of host memory; see 'ulimit -l'",
                       name_, name, bytes);
  }
  check("cudaHostRegister", code);
  memory->registered = true;
  return std::make_unique<Arena>(name, memory->pages.data(), bytes, memory);
}

}  // namespace hearth
