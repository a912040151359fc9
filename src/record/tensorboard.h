// Writes scalars for TensorBoard without its libraries. An event file is a sequence of records:
// length, masked CRC-32C, protocol buffer message Event with a Summary of simple values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_ops.h"
#include "setup/reporter.h"

namespace hearth {

class TensorBoardLog {
 public:
  /// Begins a new file events.out.tfevents.SECONDS.HOST.PID.0 in `directory`, one per start.
  explicit TensorBoardLog(const std::string& directory);

  /// Writes train/loss, train/learning_rate, train/grad_norm and the other numbers of a step.
  void step(const StepMetrics& metrics);
  /// Writes scalars by tag ("eval/loss"). Retries a failed write once; then throws a storage error.
  void scalars(int64_t step, const std::vector<std::pair<std::string, double>>& values);

 private:
  AppendFile file_;
};

/// CRC-32C (Castagnoli) of the bytes.
uint32_t crc32c(std::string_view bytes);
/// Parts of the format, for tests: a framed record, the payload of the first event, and the payload
/// of an event with scalars.
std::string tensorboard_record(std::string_view payload);
std::string tensorboard_version_event(double wall_time);
std::string tensorboard_scalar_event(double wall_time, int64_t step,
                                     const std::vector<std::pair<std::string, double>>& values);

}  // namespace hearth
