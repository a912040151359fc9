#include "device/refused_launch.h"

#include <map>
#include <mutex>

#include "base/error.h"
#include "device/cuda_state.h"

namespace hearth {
namespace {

// Launches know a stream by its handle alone. Only a refused launch looks here.
struct Targets {
  std::mutex mutex;
  std::map<const void*, CudaState*> by_stream;
};

Targets& targets() {
  static Targets all;
  return all;
}

}  // namespace

void refuse_launch(const void* stream, const std::string& kernel, int code) {
  CudaState* device = nullptr;
  {
    Targets& all = targets();
    const std::lock_guard lock(all.mutex);
    const auto it = all.by_stream.find(stream);
    if (it != all.by_stream.end()) device = it->second;
  }
  HEARTH_CHECK(device != nullptr && code != kCudaOk, "a refused launch on no stream of a device");
  device->check(("launch by " + kernel).c_str(), code);
  throw device_error("launch by " + kernel);  // not reached: `check` raises every code but 0
}

LaunchTarget::LaunchTarget(const void* stream, CudaState& device) : stream_(stream) {
  Targets& all = targets();
  const std::lock_guard lock(all.mutex);
  all.by_stream[stream] = &device;
}

LaunchTarget::~LaunchTarget() {
  Targets& all = targets();
  const std::lock_guard lock(all.mutex);
  all.by_stream.erase(stream_);
}

}  // namespace hearth
