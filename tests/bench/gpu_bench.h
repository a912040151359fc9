// What the measurements of bench_gpu share: memory on the device, times by events, lines of JSON.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "ops/op_set.h"

namespace hearth::bench {

/// The device that is measured, by its op set. `small`: a rehearsal with tiny shapes, whose rates
/// say nothing.
struct GpuTarget {
  Device& device;
  const OpSet& ops;
  bool small = false;
  double copy_rate = 0;  // bytes a second of a copy within its memory, read and written
};

/// Owns the stream, the scratch and the tensors of one group of measurements.
class GpuBench {
 public:
  GpuBench(const GpuTarget& target, ScratchNeed need);

  const GpuTarget& target() const { return target_; }
  const OpSet& ops() const { return target_.ops; }
  Stream& stream() { return *stream_; }

  /// A tensor of random numbers, uniform in [-scale, scale).
  View random(DType type, int64_t rows, int64_t cols, float scale = 1);
  View integers(const std::vector<int32_t>& values);

  /// Seconds of one call: the best of some batches, each between two events of the stream, after
  /// calls that warm up.
  double seconds(const std::function<void()>& call);

  /// One line for a call that must move `bytes`: its rate, and the share of the copy's rate.
  void report_bytes(const std::string& name, const std::string& shape, double bytes,
                    const std::function<void()>& call);
  /// One line for a call of so many multiplications and additions.
  void report_flops(const std::string& name, const std::string& shape, double flops,
                    const std::function<void()>& call);

 private:
  std::byte* reserve(size_t bytes);
  void write(std::byte* target, const void* source, size_t bytes);

  GpuTarget target_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> begin_, end_;
  std::vector<std::unique_ptr<Arena>> arenas_;
};

/// Bytes a second that a copy within the device's memory reads and writes.
double measure_copy(const GpuTarget& target);

// The groups of measurements, a file each. Each prints its lines.
void bench_rows(const GpuTarget& target);      // bound by bandwidth
void bench_products(const GpuTarget& target);  // dense maps, and the loss with its products
void bench_attention(const GpuTarget& target);
void bench_moe_layer(const GpuTarget& target);  // forward and backward, with routing

/// "8192x2048".
std::string shape_text(std::initializer_list<int64_t> sizes);

}  // namespace hearth::bench
