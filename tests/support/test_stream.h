// A host stream with n workers and exactly the scratch that was declared, so that an op that takes
// more fails.
#pragma once

#include <memory>

#include "device/device.h"
#include "ops/op_set.h"

namespace hearth::test {

class TestStream {
 public:
  explicit TestStream(int workers = 1, ScratchNeed scratch = {})
      : device_(make_host_device(uint64_t{1} << 32)) {
    StreamOptions options;
    options.name = "test";
    options.workers = workers;
    options.scratch_bytes = scratch.shared;
    options.worker_scratch_bytes = scratch.per_worker;
    stream_ = device_->create_stream(options);
  }
  operator Stream&() { return *stream_; }  // NOLINT: passed where an op takes a stream

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace hearth::test
