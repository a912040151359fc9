// Any bytes are refused with a device error of one line, before anything is written, or decode to weights
// of which those that are not sent are the shared expert's.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "comm/residual_frame.h"
#include "support/bounded.h"

namespace {

using namespace hearth;

void require(bool holds) {
  if (!holds) std::abort();
}

constexpr FrameVersion kVersion{1, 2, 3, 4};
constexpr float kShared = 0.5f;
using Sizes = std::vector<int64_t>;

struct Decoded {
  bool refused = false;
  std::vector<std::vector<std::byte>> memory;
};

Decoded decoded(ConstBytes frame, DType type, const Sizes& sizes) {
  Decoded result;
  std::vector<std::vector<float>> shared;
  for (const int64_t n : sizes) {
    shared.emplace_back(static_cast<size_t>(n), kShared);
    result.memory.emplace_back(static_cast<size_t>(n) * size_of(type), std::byte{0x5a});
  }
  std::vector<ReceivedTensor> tensors;
  for (size_t i = 0; i < sizes.size(); ++i) {
    tensors.push_back({result.memory[i].data(), shared[i]});
  }
  try {
    const test::Bounded bound(frame.bytes, {.times = 64});
    decode_frame(frame, kVersion, type, tensors);
  } catch (const Error& error) {
    result.refused = true;
    const std::string_view line = error.what();
    require(error.code() == ExitCode::device && line.find('\n') == std::string_view::npos);
    require(line.starts_with("layer 1: "));
    for (const auto& memory : result.memory) {
      for (const std::byte byte : memory) require(byte == std::byte{0x5a});
    }
  }
  return result;
}

/// What a frame says that it sends is what differs from the shared expert at most.
void check_counts(ConstBytes frame, DType type, const Sizes& sizes, const Decoded& result) {
  for (size_t t = 0; t < sizes.size(); ++t) {
    uint64_t kept = 0, differ = 0;
    std::memcpy(&kept, frame.data + 48 + 16 * t + 8, sizeof kept);
    for (size_t i = 0; i < static_cast<size_t>(sizes[t]); ++i) {
      uint32_t bits = 0, shared = 0;
      std::memcpy(&bits, result.memory[t].data() + i * size_of(type), size_of(type));
      convert(DType::f32, &kShared, type, &shared, 1);
      differ += bits != shared;
    }
    require(differ <= kept);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ConstBytes frame{reinterpret_cast<const std::byte*>(data), size};
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const Sizes& sizes : {Sizes{300, 0, 40}, Sizes{66000}}) {
      const Decoded result = decoded(frame, type, sizes);
      if (!result.refused) check_counts(frame, type, sizes, result);
    }
  }
  return 0;
}
