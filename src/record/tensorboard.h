// Scalars for TensorBoard: an event file of its record format (length, masked CRC-32C, protocol
// buffer message Event with a Summary of simple values), written without its libraries.
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
  /// A new file events.out.tfevents.SECONDS.HOST.PID.0 in `directory`; each start has its own.
  explicit TensorBoardLog(const std::string& directory);

  /// train/loss, train/learning_rate, train/grad_norm and the other numbers of a step.
  void step(const StepMetrics& metrics);
  /// Scalars by tag ("eval/loss"). Storage error when they cannot be written, after a second try.
  void scalars(int64_t step, const std::vector<std::pair<std::string, double>>& values);

 private:
  AppendFile file_;
};

/// CRC-32C (Castagnoli) of the bytes.
uint32_t crc32c(std::string_view bytes);
/// The parts of the format, for tests: a framed record, and the payloads of the first event and of
/// one with scalars.
std::string tensorboard_record(std::string_view payload);
std::string tensorboard_version_event(double wall_time);
std::string tensorboard_scalar_event(double wall_time, int64_t step,
                                     const std::vector<std::pair<std::string, double>>& values);

}  // namespace hearth
