// That the emulator of CUDA's execution sees what kernels do wrong.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cuda_emulator/language.h"
#include "cuda_emulator/tensor_core.h"
#include "support/has.h"

using namespace hearth;
using hearth::test::has;

namespace {

constexpr unsigned kWholeWarp = 0xffffffffu;

void run(unsigned blocks, unsigned threads, size_t shared, const std::function<void()>& kernel) {
  cuda_emulator::run_grid({{blocks, 1, 1}, threads, shared, "test"}, kernel);
}

std::string complaint(unsigned threads, const std::function<void()>& kernel) {
  try {
    run(1, threads, 0, kernel);
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

/// A sum over the block by halves, with or without its barriers.
float block_sum(bool barriers) {
  float sum = 0;
  run(1, 128, 128 * sizeof(float), [&] {
    auto* x = reinterpret_cast<float*>(cuda_emulator::dynamic_shared);
    x[threadIdx.x] = static_cast<float>(threadIdx.x);
    for (unsigned half = 64; half > 0; half /= 2) {
      if (barriers) __syncthreads();
      if (threadIdx.x < half) x[threadIdx.x] += x[threadIdx.x + half];
    }
    if (barriers) __syncthreads();
    if (threadIdx.x == 0) sum = x[0];
  });
  return sum;
}

}  // namespace

TEST_CASE("emulator: barriers keep threads together, in either order") {
  for (const bool backwards : {false, true}) {
    cuda_emulator::run_backwards(backwards);
    CHECK(block_sum(true) == 127 * 64);
  }
  cuda_emulator::run_backwards(false);
  CHECK_FALSE(block_sum(false) == 127 * 64);  // reads what nobody has written yet
}

TEST_CASE("emulator: every thread of every block runs, in the order asked for") {
  for (const bool backwards : {false, true}) {
    cuda_emulator::run_backwards(backwards);
    std::vector<unsigned> order;
    run(3, 5, 0, [&] { order.push_back(blockIdx.x * 5 + threadIdx.x); });
    std::vector<unsigned> expected;
    for (unsigned i = 0; i < 15; ++i) expected.push_back(backwards ? 14 - i : i);
    CHECK(order == expected);
  }
  cuda_emulator::run_backwards(false);
}

TEST_CASE("emulator: shared memory is no number when a block starts") {
  int numbers = 0;
  run(2, 1, 8 * sizeof(float), [&] {
    auto* x = reinterpret_cast<float*>(cuda_emulator::dynamic_shared);
    for (int i = 0; i < 8; ++i) {
      numbers += std::isnan(x[i]) ? 0 : 1;
      x[i] = 1;
    }
  });
  CHECK(numbers == 0);
}

TEST_CASE("emulator: threads that part at a barrier are an error that names them") {
  const std::string ended = complaint(64, [] {
    if (threadIdx.x < 63) __syncthreads();
  });
  CHECK(has(ended, "kernel of test, block (0, 0, 0)"));
  CHECK(has(ended, "waits at __syncthreads"));
  CHECK(has(ended, "thread 63 has ended"));
  const std::string elsewhere = complaint(64, [] {
    if (threadIdx.x < 32) {
      __syncthreads();
    } else {
      __syncthreads();
    }
  });
  CHECK(has(elsewhere, "diverged"));
  CHECK(has(complaint(32,
                      [] {
                        if (threadIdx.x != 3) __syncwarp();
                      }),
            "waits at __syncwarp"));
  CHECK(has(complaint(32, [] { __ballot_sync(1, true); }), "leaves out"));
  CHECK(complaint(64, [] { __syncthreads(); }) == "");  // and the next grid runs as if nothing was
}

TEST_CASE("emulator: an error in a kernel comes out, other threads waiting or not") {
  CHECK_THROWS_AS(run(2, 64, 0,
                      [] {
                        if (threadIdx.x == 40) throw std::runtime_error("planted");
                        __syncthreads();
                      }),
                  std::runtime_error);
  CHECK(block_sum(true) == 127 * 64);
}

TEST_CASE("emulator: operations of a warp") {
  int wrong = 0;
  run(1, 64, 0, [&] {
    const int lane = static_cast<int>(threadIdx.x) % 32, value = static_cast<int>(threadIdx.x) * 3;
    const int first = value - 3 * lane;
    wrong += __shfl_xor_sync(kWholeWarp, value, 5) != first + 3 * (lane ^ 5);
    wrong += __shfl_sync(kWholeWarp, value, 7) != first + 21;
    wrong += __shfl_up_sync(kWholeWarp, value, 4) != (lane >= 4 ? value - 12 : value);
    wrong += __shfl_down_sync(kWholeWarp, value, 4) != (lane < 28 ? value + 12 : value);
    wrong += __ballot_sync(kWholeWarp, lane % 3 == 0) != 0x49249249u;
    wrong += __match_any_sync(kWholeWarp, lane / 16) != (lane < 16 ? 0xffffu : 0xffff0000u);
    wrong += __any_sync(kWholeWarp, lane == 31) != true || __all_sync(kWholeWarp, lane < 31);
    if (lane < 8) wrong += __shfl_xor_sync(0xffu, value, 1) != first + 3 * (lane ^ 1);
  });
  CHECK(wrong == 0);
}

TEST_CASE("emulator: an asynchronous copy arrives when it is waited for") {
  alignas(16) float from[4] = {1, 2, 3, 4}, to[4];
  run(1, 1, 0, [&] {
    cuda_emulator::emulate_copy_async(to, from, 16, 8);
    cuda_emulator::emulate_commit_copies();
    cuda_emulator::emulate_commit_copies();
    cuda_emulator::emulate_wait_copies(2);
    CHECK(std::isnan(to[0]));
    cuda_emulator::emulate_wait_copies(1);
  });
  CHECK((to[0] == 1 && to[1] == 2 && to[2] == 0 && to[3] == 0));
}
