// A message with the weights of one expert: all of them, or the residual to the shared expert of its
// layer (HybridEP's SR compression, section IV-B; comm/shared_expert.h). Pure; owns no memory.
//
// Of each tensor the k weights whose residual |w - shared| is largest are sent; of equal ones those
// with the lowest index. Everywhere else the receiver has the shared expert. What is sent is the weight
// itself, shared plus residual: as many bytes as the residual, and without the rounding of two sums.
// So a weight that is sent has the bits that a dense message brings.
//
// Layout, little endian, without padding:
//
//   header   u32 magic, u32 kind (0 dense, 1 residual), u32 type (DType), u32 tensors,
//            i32 layer, i32 expert, i64 step, u64 shared (digest of the shared expert), f64 error
//   tensors  of each: u64 elements n, u64 kept k (dense: n)
//   values   of each tensor, dense:     n weights
//            of each tensor, residual:  u32 weights sent of each run of 65536 elements,
//                                       u16 index within its run of each, rising,
//                                       k weights
//
// An index takes 2 bytes, and 4 bytes for 65536 elements. So a weight takes 6 bytes in f32 and 4 in
// bf16 (the paper's value and index: 8 and 6). For a ratio R and b bytes per weight
//
//   k = (n b / R - 4 ceil(n / 65536)) / (2 + b),  rounded down, at least 1, at most n
//
// The header is not in R: 48 bytes, and 16 for each tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "comm/communicator.h"

namespace hearth {

/// What a frame is of. A receiver refuses any other than it expects.
struct FrameVersion {
  int32_t layer = 0, expert = 0;
  int64_t step = 0;
  uint64_t shared = 0;  // digest of the shared expert
  /// "expert 3 of step 7, shared expert 00000000000000ff".
  std::string text() const;
  friend bool operator==(const FrameVersion&, const FrameVersion&) = default;
};

/// The ratio of a dense frame.
inline constexpr double kDenseRatio = 1;

/// k of a tensor of a residual frame. `type`: f32 or bf16. Ratios below 1 may keep all.
int64_t kept_elements(int64_t elements, DType type, double ratio);
/// Bytes of a frame of tensors of so many elements, which is the same on all ranks.
size_t frame_bytes(std::span<const int64_t> elements, DType type, double ratio);

/// A tensor as its owner has it, in f32, and the shared expert's, which has values of the frame's type.
struct SentTensor {
  std::span<const float> weights, shared;
};
/// A tensor of the frame's type that a frame is written to.
struct ReceivedTensor {
  void* weights = nullptr;
  std::span<const float> shared;
};

struct Encoded {
  size_t bytes = 0;
  /// The norm of what is left out over the norm of the expert: sqrt(sum (w - w')^2 / sum w^2) over all
  /// tensors of the frame, with w the weights rounded to the frame's type, and w' what a receiver has.
  /// 0 if nothing is left out. Infinite or NaN if the expert is zero or not finite: above any threshold.
  double error = 0;
};

/// Keeps memory for counts (256 KiB) from the first call on. Not thread-safe.
class FrameEncoder {
 public:
  /// `out`: at least frame_bytes. Bits depend on the arguments alone.
  Encoded encode(const FrameVersion& version, DType type, std::span<const SentTensor> tensors,
                 double ratio, Bytes out);

 private:
  struct Cut {
    uint32_t key = 0;    // of the smallest magnitude that is sent
    int64_t of_key = 0;  // how many of that magnitude are, the first ones
  };
  Cut cut_of(const SentTensor& tensor, DType type, int64_t kept);

  std::vector<uint32_t> counts_;
};

struct FrameFacts {
  bool dense = true;
  double error = 0;  // Encoded::error
};
/// Writes the weights of a frame to tensors, which have the sizes that both sides know. Device error,
/// before anything is written, if the frame is not what was expected: other bytes, another version.
FrameFacts decode_frame(ConstBytes frame, const FrameVersion& expected, DType type,
                        std::span<const ReceivedTensor> tensors);

}  // namespace hearth
