// CUDA devices over the fake runtime.
#pragma once

#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "device/cuda_device.h"
#include "device/cuda_stream.h"
#include "support/fake_cuda.h"
#include "support/raises.h"

namespace hearth::test {

struct FakeGpus {
  explicit FakeGpus(const FakeCudaOptions& options = {}, uint64_t budget = 0,
                    std::shared_ptr<Budget> pinned = nullptr)
      : cuda(options) {
    std::vector<CudaDeviceOptions> of_devices;
    for (int i = 0; i < options.devices; ++i) of_devices.push_back({i, budget, pinned});
    made = make_cuda_devices(cuda, of_devices);
  }
  Device& device(size_t i = 0) { return *made.devices[i]; }

  FakeCuda cuda;
  CudaDevices made;
};

template <class F>
bool raises(ExitCode code, const std::string& part, const F& f) {
  const Raised raised = raised_by(f);
  return raised.code == code && raised.says(part);
}

// Whether the host may read this byte, asked without touching it.
inline bool host_can_read(const void* address) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  const bool readable = write(ends[1], address, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return readable;
}

// The bytes of device memory, copied by a stream of its own.
inline std::vector<unsigned char> bytes_of(Device& device, const void* source, size_t bytes) {
  StreamOptions options;
  options.use = StreamUse::copy_out;
  const auto stream = device.create_stream(options);
  std::vector<unsigned char> result(bytes);
  device.copy(*stream, result.data(), source, bytes);
  stream->synchronize();
  return result;
}

}  // namespace hearth::test
