// A stream with n workers and exactly the declared scratch memory, so an op that takes more fails.
// On the host, or on the GPU for op set "cuda".
#pragma once

#include <memory>

#include "device/device.h"
#include "device/host_device.h"
#include "ops/op_set.h"
#ifdef HEARTH_TEST_GPU  // defined by linking support/test_gpu.cpp
#include "support/test_gpu.h"
#endif

namespace hearth::test {

class TestStream {
 public:
  explicit TestStream(int workers = 1, ScratchNeed scratch = {}) { start(workers, scratch); }
  /// A stream for ops of this set.
  TestStream(const OpSet& ops, int workers, ScratchNeed scratch) {
#ifdef HEARTH_TEST_GPU
    if (ops.name() == "cuda") device_ = test_gpu();
#else
    static_cast<void>(ops);
#endif
    start(workers, scratch);
  }
  operator Stream&() { return *stream_; }  // NOLINT: passed where an op takes a stream

 private:
  void start(int workers, ScratchNeed scratch) {
    if (device_ == nullptr) {
      host_ = make_host_device(uint64_t{1} << 32);
      device_ = host_.get();
    }
    StreamOptions options;
    options.name = "test";
    options.workers = workers;
    options.scratch_bytes = scratch.shared;
    options.worker_scratch_bytes = scratch.per_worker;
    stream_ = device_->create_stream(options);
  }

  std::unique_ptr<Device> host_;
  Device* device_ = nullptr;
  std::unique_ptr<Stream> stream_;
};

}  // namespace hearth::test
