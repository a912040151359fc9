// The keywords and functions of CUDA for the host compiler. In the global namespace, as in CUDA.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "cuda_emulator/engine.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ static __attribute__((section("emulated_shared")))

#define threadIdx (::hearth::cuda_emulator::current->index)
#define blockIdx (::hearth::cuda_emulator::block_index)
#define gridDim (::hearth::cuda_emulator::grid_shape.blocks)
#define blockDim (::hearth::cuda_emulator::block_dim())
namespace hearth::cuda_emulator {
inline Index block_dim() { return {grid_shape.threads, 1, 1}; }
}  // namespace hearth::cuda_emulator

// ---- vector types ------------------------------------------------------------------------------

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) double2 {
  double x, y;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

// ---- functions of numbers ----------------------------------------------------------------------

using std::isfinite;
using std::isinf;
using std::isnan;
using std::max;
using std::min;

inline float rsqrtf(float x) { return static_cast<float>(1.0 / std::sqrt(double{x})); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }

inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __ffs(unsigned x) { return x == 0 ? 0 : std::countr_zero(x) + 1; }
inline int __clz(unsigned x) { return std::countl_zero(x); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(uint64_t{a} * b >> 32);
}

template <class T>
T __ldg(const T* p) {
  return *p;
}

// ---- threads of a block ------------------------------------------------------------------------

inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  ::hearth::cuda_emulator::sync_block(file, line);
}
inline void __threadfence() {}
inline void __threadfence_block() {}

// Fibers switch only at barriers and warp operations, so a plain update is atomic.
#define HEARTH_EMULATED_ATOMIC(name, expression)     \
  template <class T>                                 \
  requires std::is_integral_v<T> T name(T* p, T x) { \
    const T old = *p;                                \
    *p = expression;                                 \
    return old;                                      \
  }
HEARTH_EMULATED_ATOMIC(atomicAdd, old + x)
HEARTH_EMULATED_ATOMIC(atomicSub, old - x)
HEARTH_EMULATED_ATOMIC(atomicMax, std::max(old, x))
HEARTH_EMULATED_ATOMIC(atomicMin, std::min(old, x))
HEARTH_EMULATED_ATOMIC(atomicOr, old | x)
HEARTH_EMULATED_ATOMIC(atomicExch, x)
#undef HEARTH_EMULATED_ATOMIC

// ---- threads of a warp -------------------------------------------------------------------------

namespace hearth::cuda_emulator {

/// The input and result of a lane in a shuffle.
template <class T>
struct Shuffle {
  T value;
  unsigned source;  // source lane
  T result;
};

template <class T>
T shuffle(const char* what, unsigned mask, T value, unsigned source) {
  Shuffle<T> mine{value, source, value};
  sync_warp(what, mask, &mine, [](void* const* lanes, unsigned in) {
    for (unsigned l = 0; l < 32; ++l) {
      if ((in >> l & 1) == 0) continue;
      auto& to = *static_cast<Shuffle<T>*>(lanes[l]);
      // CUDA leaves values from a lane outside the mask undefined.
      if ((in >> to.source & 1) != 0) {
        to.result = static_cast<Shuffle<T>*>(lanes[to.source])->value;
      } else {
        std::memset(&to.result, 0xff, sizeof(T));
      }
    }
  });
  return mine.result;
}

struct Vote {
  bool value;
  unsigned result;
};
inline unsigned vote(const char* what, unsigned mask, bool value) {
  Vote mine{value, 0};
  sync_warp(what, mask, &mine, [](void* const* lanes, unsigned in) {
    unsigned all = 0;
    for (unsigned l = 0; l < 32; ++l) {
      if ((in >> l & 1) != 0 && static_cast<Vote*>(lanes[l])->value) all |= 1u << l;
    }
    for (unsigned l = 0; l < 32; ++l) {
      if ((in >> l & 1) != 0) static_cast<Vote*>(lanes[l])->result = all;
    }
  });
  return mine.result;
}

template <class T>
struct Match {
  T value;
  unsigned result;
};
/// The lanes with the same value.
template <class T>
unsigned match(unsigned mask, T value) {
  Match<T> mine{value, 0};
  sync_warp("__match_any_sync", mask, &mine, [](void* const* lanes, unsigned in) {
    for (unsigned l = 0; l < 32; ++l) {
      if ((in >> l & 1) == 0) continue;
      auto& to = *static_cast<Match<T>*>(lanes[l]);
      for (unsigned m = 0; m < 32; ++m) {
        if ((in >> m & 1) != 0 && static_cast<Match<T>*>(lanes[m])->value == to.value) {
          to.result |= 1u << m;
        }
      }
    }
  });
  return mine.result;
}

inline unsigned lane() { return current->lane(); }

}  // namespace hearth::cuda_emulator

inline void __syncwarp(unsigned mask = 0xffffffffu) {
  ::hearth::cuda_emulator::sync_warp("__syncwarp", mask, nullptr, [](void* const*, unsigned) {});
}
template <class T>
T __shfl_sync(unsigned mask, T x, int source, int width = 32) {
  const unsigned own = ::hearth::cuda_emulator::lane(), w = static_cast<unsigned>(width);
  return ::hearth::cuda_emulator::shuffle("__shfl_sync", mask, x,
                                          own / w * w + static_cast<unsigned>(source) % w);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T x, int with, int width = 32) {
  const unsigned own = ::hearth::cuda_emulator::lane(), w = static_cast<unsigned>(width);
  const unsigned other = own ^ static_cast<unsigned>(with);
  return ::hearth::cuda_emulator::shuffle("__shfl_xor_sync", mask, x,
                                          other / w == own / w ? other : own);
}
template <class T>
T __shfl_up_sync(unsigned mask, T x, unsigned by, int width = 32) {
  const unsigned own = ::hearth::cuda_emulator::lane(), w = static_cast<unsigned>(width);
  return ::hearth::cuda_emulator::shuffle("__shfl_up_sync", mask, x,
                                          own % w >= by ? own - by : own);
}
template <class T>
T __shfl_down_sync(unsigned mask, T x, unsigned by, int width = 32) {
  const unsigned own = ::hearth::cuda_emulator::lane(), w = static_cast<unsigned>(width);
  return ::hearth::cuda_emulator::shuffle("__shfl_down_sync", mask, x,
                                          own % w + by < w ? own + by : own);
}
template <class T>
unsigned __match_any_sync(unsigned mask, T x) {
  return ::hearth::cuda_emulator::match(mask, x);
}
inline unsigned __ballot_sync(unsigned mask, bool x) {
  return ::hearth::cuda_emulator::vote("__ballot_sync", mask, x);
}
inline bool __any_sync(unsigned mask, bool x) {
  return ::hearth::cuda_emulator::vote("__any_sync", mask, x) != 0;
}
inline bool __all_sync(unsigned mask, bool x) {
  return ::hearth::cuda_emulator::vote("__all_sync", mask, x) == mask;
}
