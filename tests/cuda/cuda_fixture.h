// Runs of the whole program on a CUDA runtime without a GPU: its memory cannot be touched by the host,
// its work runs late, its kernels are those of gpu_kernels, run by the emulator.
#pragma once

#include <optional>

#include "cuda_emulator/emulated_ops.h"
#include "setup/run_devices.h"
#include "support/fake_cuda.h"
#include "train/lora_fixture.h"

namespace hearth::test {

class CudaFixture : public LoraFixture {
 public:
  explicit CudaFixture(const FakeCudaOptions& options = {}) : cuda(options) {
    static const bool registered = [] {
      bool known = false;
      for (const OpSet* ops : op_sets()) known |= ops == &emulated_ops();
      if (!known) register_op_set(emulated_ops());
      return true;
    }();
    static_cast<void>(registered);
    current() = &cuda;
    set_cuda_back_end({[](std::string&) -> CudaCalls* { return current(); }, emulated_ops().name(),
                       "80-real,90-virtual"});
  }
  ~CudaFixture() { set_cuda_back_end({}); }

  FakeCuda cuda;

  /// Few steps: emulated kernels are slow.
  TrainConfig short_run(const std::string& out, const std::string& devices) const {
    TrainConfig c = config(out);
    c.steps = 3;
    c.grad_accum = 2;
    c.micro_batch = 1;
    c.compute = ComputeChoice::f32;
    c.devices = devices;
    return c;
  }

  /// Losses and gradient norms by step.
  std::vector<StepMetrics> metrics_of(const TrainConfig& config) {
    RecordingReporter reporter;
    REQUIRE(train(config, reporter) == ExitCode::done);
    return reporter.steps;
  }

 private:
  static FakeCuda*& current() {
    static FakeCuda* one = nullptr;
    return one;
  }
};

}  // namespace hearth::test
