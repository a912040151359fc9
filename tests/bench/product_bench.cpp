#include "product_bench.h"

#include <cstdio>
#include <string>
#include <vector>

#include "cpu_kernels/product.h"
#include "device/host_device.h"
#include "machine_rates.h"

namespace hearth::bench {
namespace {

// A tile of an op: a block of 256 outputs of a map with 1,024 inputs, and the weight gradient's tile.
constexpr int64_t kIn = 1024, kOut = 256;
constexpr int64_t kWeights = 24;  // read in turn, so that they come from the shared cache or memory
constexpr double kWindow = 0.06;

enum class Form { forward, data, weight };

struct Memory {
  std::vector<float> rows, outputs, products, weights;
  std::vector<bf16> rounded;

  explicit Memory(int64_t most) {
    const auto fill = [](std::vector<float>& values, int64_t n) {
      for (int64_t i = 0; i < n; ++i) values.push_back(static_cast<float>(i % 101 - 50) * 1e-3f);
    };
    fill(rows, most * kIn);
    fill(outputs, most * kIn);
    fill(products, most * kIn);
    fill(weights, kWeights * kIn * kOut);
    rounded.resize(weights.size());
    convert(DType::f32, weights.data(), DType::bf16, rounded.data(), std::ssize(weights));
  }
  // Weight i as [out, in].
  ConstView weight(bool bf16, int64_t i, int64_t out, int64_t in) const {
    const int64_t at = i % kWeights * kIn * kOut;
    if (bf16) return {rounded.data() + at, DType::bf16, out, in};
    return {weights.data() + at, DType::f32, out, in};
  }
};

// Product i of a worker. A weight gradient sums over `m` rows, into one of the weights.
MatrixProduct product_of(Memory& memory, Form form, bool bf16, int64_t m, int64_t i) {
  MatrixProduct p{.bf16 = bf16, .a = ConstView(), .b = ConstView()};
  const auto view = [&](std::vector<float>& from, int64_t rows, int64_t cols) {
    return ConstView(from.data(), DType::f32, rows, cols);
  };
  if (form == Form::forward) {
    p.a = view(memory.rows, m, kIn);
    p.b = Operand(memory.weight(bf16, i, kOut, kIn), true);
    p.c = memory.products.data();
    p.ldc = kOut;
  } else if (form == Form::data) {
    p.a = view(memory.rows, m, kIn);
    p.b = Operand(memory.weight(bf16, i, kIn, kOut));
    p.c = memory.products.data();
    p.ldc = kOut;
  } else {
    p.a = Operand(view(memory.outputs, m, kOut), true);
    p.b = Operand(view(memory.rows, m, kIn)).block(0, m, 0, kOut);
    p.c = memory.weights.data() + i % kWeights * kIn * kOut;
    p.ldc = kIn;
    p.accumulate = true;
  }
  return p;
}

double rate(HostStream& stream, const ProductImplementation& one, std::vector<Memory>& memories,
            Form form, bool bf16, int64_t m) {
  const int workers = stream.pool().workers();
  constexpr int64_t kTurns = 2 * kWeights;
  const double time = best_time(stream, kWindow, [&] {
    stream.pool().run(workers, [&](int64_t tile, int worker) {
      Memory& memory = memories[static_cast<size_t>(tile)];
      for (int64_t i = 0; i < kTurns; ++i) {
        MatrixProduct p = product_of(memory, form, bf16, m, i);
        const MatrixProduct next = product_of(memory, form, bf16, m, i + 1);
        p.coming = &next.b;
        one.run(stream.worker_scratch(worker), p);
      }
    });
  });
  const double flops = 2.0 * static_cast<double>(m) * kOut * (form == Form::weight ? kOut : kIn);
  return flops * kTurns * workers / time / 1e9;
}

}  // namespace

void print_products(int workers) {
  const int64_t sizes[] = {1, 4, 16, 64, 128, 256, 512};
  StreamOptions options;
  options.workers = workers;
  for (const bool bf16 : {false, true}) {
    for (const ProductImplementation* one : product_implementations(bf16)) {
      options.worker_scratch_bytes = std::max(options.worker_scratch_bytes, one->scratch_bytes());
    }
  }
  const auto device = make_host_device(uint64_t{4} << 30);
  const auto stream = device->create_stream(options);
  HostStream& host = host_stream(*stream);
  std::vector<Memory> memories;
  for (int w = 0; w < workers; ++w) memories.emplace_back(512);
  std::printf("products, %ld inputs by %ld outputs a worker, GFLOP/s of %d workers\n",
              static_cast<long>(kIn), static_cast<long>(kOut), workers);
  std::printf("%-5s %-9s %-13s", "type", "product", "rows:");
  for (const int64_t m : sizes) std::printf(" %6ld", static_cast<long>(m));
  std::printf("\n");
  for (const bool bf16 : {false, true}) {
    for (const auto& [form, name] :
         {std::pair{Form::forward, "forward"}, {Form::data, "data"}, {Form::weight, "weight"}}) {
      for (const ProductImplementation* one : product_implementations(bf16)) {
        if (!one->missing().empty()) continue;
        std::printf("%-5s %-9s %-13s", bf16 ? "bf16" : "f32", name,
                    std::string(one->name()).c_str());
        for (const int64_t m : sizes) {
          std::printf(" %6.0f", rate(host, *one, memories, form, bf16, m));
          std::fflush(stdout);
        }
        std::printf("\n");
      }
    }
  }
  const double instructions = dot_rate(host);
  std::printf("instructions alone: %.0f f32", fma_rate(host));
  if (instructions > 0) std::printf(", %.0f bf16 pairs", instructions);
  if (const double tiles = tile_rate(host); tiles > 0) std::printf(", %.0f AMX tiles", tiles);
  std::printf("\n");
}

}  // namespace hearth::bench
