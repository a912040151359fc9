#include "record/tensorboard.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>

#include "base/error.h"

namespace hearth {
namespace {

// Little-endian bytes of a value.
template <class T>
std::string fixed(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

// Fields of a protocol buffer message: key (number and wire type), then the value.
std::string double_field(int number, double value) {
  return varint(static_cast<uint64_t>(number) << 3 | 1) + fixed(std::bit_cast<uint64_t>(value));
}
std::string float_field(int number, float value) {
  return varint(static_cast<uint64_t>(number) << 3 | 5) + fixed(std::bit_cast<uint32_t>(value));
}
std::string varint_field(int number, uint64_t value) {
  return varint(static_cast<uint64_t>(number) << 3) + varint(value);
}
std::string bytes_field(int number, const std::string& value) {
  return varint(static_cast<uint64_t>(number) << 3 | 2) + varint(value.size()) + value;
}

uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8u; }

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string new_file_name() {
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') host[0] = '-';
  return "events.out.tfevents." + std::to_string(static_cast<int64_t>(wall_time())) + "." + host +
         "." + std::to_string(::getpid()) + ".0";
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) ? 0x82f63b78u : 0);
      t[i] = c;
    }
    return t;
  }();
  uint32_t crc = 0xffffffffu;
  for (const char byte : bytes) crc = (crc >> 8) ^ table[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  return ~crc;
}

std::string tensorboard_record(std::string_view payload) {
  const std::string length = fixed(static_cast<uint64_t>(payload.size()));
  return length + fixed(masked_crc(length)) + std::string(payload) + fixed(masked_crc(payload));
}

std::string tensorboard_version_event(double wall_time) {
  return double_field(1, wall_time) + bytes_field(3, "brain.Event:2");
}

std::string tensorboard_scalar_event(double wall_time, int64_t step,
                                     const std::vector<std::pair<std::string, double>>& values) {
  std::string summary;
  for (const auto& [tag, value] : values) {
    summary += bytes_field(1, bytes_field(1, tag) + float_field(2, static_cast<float>(value)));
  }
  return double_field(1, wall_time) + varint_field(2, static_cast<uint64_t>(step)) +
         bytes_field(5, summary);
}

TensorBoardLog::TensorBoardLog(const std::string& directory)
    : file_(directory + "/" + new_file_name()) {
  file_.record(tensorboard_record(tensorboard_version_event(wall_time())));
}

void TensorBoardLog::scalars(int64_t step,
                             const std::vector<std::pair<std::string, double>>& values) {
  const std::string record =
      tensorboard_record(tensorboard_scalar_event(wall_time(), step, values));
  try {
    file_.record(record);
  } catch (const Error&) {
    file_.record(record);
  }
}

void TensorBoardLog::step(const StepMetrics& metrics) {
  std::vector<std::pair<std::string, double>> values = {
      {"train/loss", metrics.loss},         {"train/epoch", metrics.epoch},
      {"train/aux_loss", metrics.aux_loss}, {"train/grad_norm", metrics.grad_norm},
      {"train/learning_rate", metrics.lr},  {"train/tokens_per_s", metrics.tokens_per_s},
      {"train/time_s", metrics.time_s},     {"train/bound_pct", metrics.bound_pct}};
  if (metrics.z_loss) values.emplace_back("train/z_loss", *metrics.z_loss);
  scalars(metrics.step, values);
}

}  // namespace hearth
