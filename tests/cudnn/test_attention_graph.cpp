// Graphs for cuDNN, up to where a device is needed: the frontend takes them and the library finds
// engines for devices that are described to it. Needs libcudnn, and libcuda.so.1 or the toolkit's stub
// of it.
#include <catch2/catch_test_macros.hpp>

#include "gpu_kernels/libraries/cudnn/attention_graph.h"
#include "gpu_kernels/libraries/cudnn/library.h"

using namespace hearth::HEARTH_GPU;

namespace {

struct Described {
  std::string json;
  int architecture;
};

// Of an architecture, the numbers that cuDNN asks for.
Described device(int architecture, int processors, int shared, int level2, const char* name) {
  const auto number = [](int64_t n) { return std::to_string(n); };
  return {R"({"schemaVersion":1,"deviceVer":)" + number(architecture * 10) +
              R"(,"driverVer":13000,"cudaDeviceId":0,"totalGlobalMem":85000000000)" +
              R"(,"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64])" +
              R"(,"regsPerBlock":65536,"multiProcessorCount":)" + number(processors) +
              R"(,"warpSize":32,"maxSharedMemoryPerBlock":49152)" +
              R"(,"maxSharedMemoryPerBlockOptin":)" + number(shared) +
              R"(,"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536)" +
              R"(,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048)" +
              R"(,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1)" +
              R"(,"smClockRateKHz":1410000,"memClockRateKHz":1593000,"l2CacheSize":)" +
              number(level2) + R"(,"deviceName":")" + name + R"("})",
          architecture};
}
const Described& hopper() {
  static const Described h100 = device(90, 132, 232448, 52428800, "NVIDIA H100 80GB HBM3");
  return h100;
}
const Described& ampere() {
  static const Described a100 = device(80, 108, 166912, 41943040, "NVIDIA A100-SXM4-80GB");
  return a100;
}

AttentionGraphShape shape(bool backward) {
  AttentionGraphShape s;
  s.backward = backward;
  s.heads = 32;
  s.kv_heads = 4;
  s.head_dim = 128;
  s.scale = 0.088f;
  s.sequences = 4;
  s.rows = s.key_rows = 4096;
  s.sum_stride = 32;
  return s;
}

std::string problem(const Described& on, const AttentionGraphShape& s) {
  return AttentionGraph(on.json, on.architecture, s).problem();
}

void skip_without_library() {
  if (!cudnn().problem.empty()) SKIP(cudnn().problem);
  const std::string said = problem(hopper(), shape(false));
  if (said.find("PREREQUISITE") != std::string::npos) SKIP("no libcuda.so.1: " + said);
}

}  // namespace

TEST_CASE("cuDNN graphs: packed sequences have engines, forward and backward") {
  skip_without_library();
  CHECK(problem(hopper(), shape(false)) == "");
  CHECK(problem(hopper(), shape(true)) == "");
  CHECK(problem(ampere(), shape(false)) == "");
  for (const int64_t head_dim : {64, 80, 256}) {
    AttentionGraphShape s = shape(false);
    s.head_dim = head_dim;
    CAPTURE(head_dim);
    CHECK(problem(hopper(), s) == "");
  }
}

TEST_CASE("cuDNN graphs: windows, a head of keys a head, one sequence") {
  skip_without_library();
  for (const bool backward : {false, true}) {
    CAPTURE(backward);
    AttentionGraphShape window = shape(backward);
    window.window = 512;
    CHECK(problem(hopper(), window) == "");
    AttentionGraphShape own = shape(backward);
    own.kv_heads = own.heads;
    CHECK(problem(hopper(), own) == "");
    AttentionGraphShape one = shape(backward);
    one.sequences = 1;
    one.rows = one.key_rows = 128;
    CHECK(problem(hopper(), one) == "");
  }
}

TEST_CASE("cuDNN graphs: what is not supported has a reason") {
  skip_without_library();
  AttentionGraphShape odd = shape(false);
  odd.head_dim = 60;
  CHECK(problem(hopper(), odd) != "");
  if (cudnn().version >= 91801) {  // sums in a fixed order
    CHECK(problem(ampere(), shape(true)) != "");
  }
  CHECK(problem({"{}", 90}, shape(false)) != "");
}
