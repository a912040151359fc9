// What the machine can do, measured beside what an op does: neighbours on the same host disturb
// both alike, so that the ratio of the best of each stands.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>

#include "device/host_stream.h"

namespace hearth::bench {

/// Best time of one call, over calls in about `window` seconds and at least three. With one worker
/// it is the CPU time of the thread, which other programs on the machine disturb least.
double best_time(HostStream& stream, double window, const std::function<void()>& call);

/// GFLOP/s of independent fused multiply-adds on all workers, best of some short windows.
double fma_rate(HostStream& stream);

/// GFLOP/s of independent dot products of pairs of bf16 (AVX512_BF16) on all workers; 0: not there.
double dot_rate(HostStream& stream);

/// GFLOP/s of independent products of bf16 tiles (AMX) on all workers; 0: not there.
double tile_rate(HostStream& stream);

/// GB/s of a[i] = b[i] + s * c[i] on all workers over arrays of `n` floats, with the read of `a`
/// that the store causes: 16 bytes an element.
double triad_rate(HostStream& stream, int64_t n);

/// A program's argument, at least 1; `otherwise` where it is not given.
inline int64_t argument(int argc, char** argv, int i, int64_t otherwise) {
  return argc > i ? std::max<int64_t>(1, std::atoll(argv[i])) : otherwise;
}

}  // namespace hearth::bench
