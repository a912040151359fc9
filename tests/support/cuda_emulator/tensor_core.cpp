#include "cuda_emulator/tensor_core.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "cuda_emulator/engine.h"

namespace hearth::cuda_emulator {
namespace {

constexpr unsigned kWholeWarp = 0xffffffffu;

struct Product {
  float* c;
  const uint32_t *a, *b;
};

float half_of(uint32_t pair, int i) {
  return to_float(bf16{static_cast<uint16_t>(pair >> (16 * i))});
}

// Sums in f64, rounded once: hardware orders and rounds them as it likes.
void multiply(void* const* lanes, unsigned) {
  float a[16][16], b[8][16];  // b by column
  for (int lane = 0; lane < 32; ++lane) {
    const auto& p = *static_cast<const Product*>(lanes[lane]);
    const int g = lane / 4, t = lane % 4;
    for (int i = 0; i < 2; ++i) {
      for (int r = 0; r < 4; ++r) {
        a[g + 8 * (r % 2)][2 * t + 8 * (r / 2) + i] = half_of(p.a[r], i);
      }
      for (int r = 0; r < 2; ++r) b[g][2 * t + 8 * r + i] = half_of(p.b[r], i);
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    const auto& p = *static_cast<const Product*>(lanes[lane]);
    for (int r = 0; r < 4; ++r) {
      const float* row = a[lane / 4 + 8 * (r / 2)];
      const float* column = b[2 * (lane % 4) + r % 2];
      double sum = p.c[r];
      for (int k = 0; k < 16; ++k) sum += static_cast<double>(row[k]) * column[k];
      p.c[r] = static_cast<float>(sum);
    }
  }
}

struct Load {
  const void* row;
  uint32_t* x;
};

uint16_t element(void* const* lanes, int part, int row, int column) {
  uint16_t x;
  const auto& from = *static_cast<const Load*>(lanes[8 * part + row]);
  std::memcpy(&x, static_cast<const std::byte*>(from.row) + 2 * column, sizeof x);
  return x;
}

template <bool kTransposed>
void load(void* const* lanes, unsigned) {
  for (int lane = 0; lane < 32; ++lane) {
    const auto& to = *static_cast<const Load*>(lanes[lane]);
    const int r = lane / 4, c = lane % 4 * 2;
    for (int part = 0; part < 4; ++part) {
      const uint32_t low = kTransposed ? element(lanes, part, c, r) : element(lanes, part, r, c);
      const uint32_t high =
          kTransposed ? element(lanes, part, c + 1, r) : element(lanes, part, r, c + 1);
      to.x[part] = low | high << 16;
    }
  }
}

bool aligned(const void* p, int bytes) {
  return reinterpret_cast<uintptr_t>(p) % static_cast<uintptr_t>(bytes) == 0;
}

}  // namespace

void emulate_mma_m16n8k16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  Product mine{c, a, b};
  sync_warp("mma", kWholeWarp, &mine, &multiply);
}

void emulate_ldmatrix_x4(uint32_t (&x)[4], const void* shared_row, bool transposed) {
  HEARTH_CHECK(aligned(shared_row, 16), "ldmatrix: alignment");
  Load mine{shared_row, x};
  sync_warp(transposed ? "ldmatrix.trans" : "ldmatrix", kWholeWarp, &mine,
            transposed ? &load<true> : &load<false>);
}

void emulate_copy_async(void* shared, const void* global, int bytes, int valid_bytes) {
  HEARTH_CHECK(aligned(shared, bytes) && aligned(global, bytes), "cp.async: alignment");
  HEARTH_CHECK(valid_bytes >= 0 && valid_bytes <= bytes, "cp.async: bytes");
  std::memset(shared, 0xff, static_cast<size_t>(bytes));
  current->copies.push_back({shared, global, bytes, valid_bytes, current->group});
}

void emulate_commit_copies() { ++current->group; }

void emulate_wait_copies(int pending) {
  auto& copies = current->copies;
  const int64_t arrived = current->group - pending;  // groups below this one
  size_t n = 0;
  for (; n < copies.size() && copies[n].group < arrived; ++n) {
    const Thread::Copy& copy = copies[n];
    std::memset(copy.to, 0, static_cast<size_t>(copy.bytes));
    std::memcpy(copy.to, copy.from, static_cast<size_t>(copy.valid));
  }
  copies.erase(copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(n));
}

}  // namespace hearth::cuda_emulator
