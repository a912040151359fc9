// What tests/guards counts: the main ops once each, one worker, in a function of their own that
// callgrind looks for. Hidden: of itself it checks nothing.
#include <catch2/catch_test_macros.hpp>
#include <cstdio>

#include "cpu_kernels/cpu_ops.h"
#include "ops/op_test.h"
#include "support/counted_memory.h"

using namespace hearth;
using namespace hearth::test;

extern "C" __attribute__((noinline)) void hearth_counted(const Body& body, const Run& run) {
  body(run);
}

namespace {

// Small ones: callgrind also runs what makes their tensors.
constexpr const char* kCounted[] = {
    "linear: rows 16, out 768, in 2048, stored f32",
    "experts: experts 8, rows of the first 16, hidden 256,",
    "attention: sequences 1, queries 256,",
    "cross_entropy: tokens 64,",
};

/// f(line, call, run) for each call of the counted cases, after a call that is not counted.
template <class F>
void each_counted(const F& f) {
  for (const PerfCase& perf : perf_cases()) {
    const std::string line = line_of(perf);
    if (std::ranges::none_of(kCounted, [&](const char* text) { return line.starts_with(text); })) {
      continue;
    }
    OpTest test = perf.make();
    TestStream stream(cpu_ops(), 1, test.scratch ? test.scratch(cpu_ops()) : ScratchNeed{});
    const Run run{cpu_ops(), stream, test.tensors, perf.compute};
    for (const TimedCall& call : test.timed) {
      call.body(run);
      f(line, call, run);
    }
  }
}

}  // namespace

TEST_CASE("counted ops: their instructions", "[.instructions]") {
  each_counted([](const std::string& line, const TimedCall& call, const Run& run) {
    hearth_counted(call.body, run);
    std::printf("counted: %s, %s\n", line.c_str(), call.name.c_str());
  });
}

TEST_CASE("counted ops: no memory from the heap after the first call") {
  each_counted([](const std::string& line, const TimedCall& call, const Run& run) {
    CAPTURE(line, call.name);
    fail_allocation(0);
    call.body(run);
    // What the test itself makes lists of: views of experts and of their gradients. Tiles are dozens.
    const int64_t lists = line.starts_with("experts") ? 8 : 0;
    const int64_t taken = allocations();
    CHECK(taken <= lists);
  });
}
