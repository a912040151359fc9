// Rates of the CPU op set beside those of the machine, on the cases that the op tests define
// (tests/ops, add_perf_cases). docs/benchmarks/ops-cpu.md keeps a run.
//
//   bench_ops [--workers N] [--only TEXT]  times the cases whose line contains TEXT
//   bench_ops [--workers N] --products     all implementations of products side by side
//   bench_ops --list                       prints the cases
//   bench_ops --check [Catch2 options]     runs the op tests themselves
#include <algorithm>
#include <catch2/catch_session.hpp>
#include <cstdio>
#include <string>
#include <thread>

#include "cpu_kernels/cpu_info.h"
#include "cpu_kernels/cpu_ops.h"
#include "device/host_device.h"
#include "machine_rates.h"
#include "ops/op_test.h"
#include "product_bench.h"

using namespace hearth;
using namespace hearth::bench;
using namespace hearth::test;

namespace {

constexpr double kWindow = 0.3;

struct Options {
  int workers = static_cast<int>(std::thread::hardware_concurrency());
  std::string only;
  bool list = false, products = false;
};

/// The call and the bound of the machine in alternating windows, best against best.
void time_call(const TimedCall& call, const Run& run) {
  HostStream& host = host_stream(run.stream);
  double time = 1e30, bound = 0;
  for (int i = 0; i < 3; ++i) {
    bound = std::max(bound, call.flops > 0 ? fma_rate(host) : triad_rate(host, int64_t{4} << 20));
    time = std::min(time, best_time(host, kWindow / 3, [&] { call.body(run); }));
  }
  const double rate = (call.flops > 0 ? call.flops : call.bytes) / time / 1e9;
  std::printf("  %-16s %8.1f %-7s %5.2f of %s, %.3f ms\n", call.name.c_str(), rate,
              call.flops > 0 ? "GFLOP/s" : "GB/s", rate / bound,
              call.flops > 0 ? "the FMA rate" : "the triad", time * 1e3);
  std::fflush(stdout);
}

void run_case(const PerfCase& perf, const Options& options) {
  const std::string line = line_of(perf);
  if (line.find(options.only) == std::string::npos) return;
  std::printf("%s\n", line.c_str());
  if (options.list) return;
  OpTest test = perf.make();
  TestStream stream(options.workers, test.scratch ? test.scratch(cpu_ops()) : ScratchNeed{});
  const Run run{cpu_ops(), stream, test.tensors, perf.compute};
  for (const TimedCall& call : test.timed) time_call(call, run);
}

int usage() {
  std::fprintf(
      stderr,
      "usage: bench_ops [--workers N] [--only TEXT] | --products | --list | --check [...]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--check") {
      argv[i] = argv[0];
      return Catch::Session().run(argc - i, argv + i);
    }
    if (name == "--list") {
      options.list = true;
    } else if (name == "--products") {
      options.products = true;
    } else if (name == "--workers" && i + 1 < argc) {
      options.workers = std::max(1, std::atoi(argv[++i]));
    } else if (name == "--only" && i + 1 < argc) {
      options.only = argv[++i];
    } else {
      return usage();
    }
  }
  if (!options.list) {
    std::printf("%s, oneDNN %s, %d workers\n", cpu_isa().c_str(), onednn_version().c_str(),
                options.workers);
    for (const std::string& line : matmul_variants()) std::printf("%s\n", line.c_str());
  }
  if (options.products) {
    print_products(options.workers);
    return 0;
  }
  for (const PerfCase& perf : perf_cases()) run_case(perf, options);
}
