#include "cpu_kernels/onednn_shim.h"

#include <dnnl.hpp>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>

#include "cpu_kernels/isa.h"
#include "cpu_kernels/packing.h"
#include "cpu_kernels/product.h"

namespace hearth {
namespace {

using dnnl::memory;

// Sides of a product are filled up with zeros to a multiple of this, so that few shapes exist.
constexpr int64_t kPadding = 32;
constexpr int64_t kDepth = 1024;              // of k in one call
constexpr size_t kLibraryScratch = 4u << 20;  // what a call of these sizes may ask for

int64_t padded(int64_t n) { return (n + kPadding - 1) / kPadding * kPadding; }

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::matmul::primitive_desc matmul_desc(const memory::desc& a, const memory::desc& b,
                                         const memory::desc& c,
                                         const dnnl::primitive_attr& attributes) {
#if DNNL_VERSION_MAJOR >= 3
  return {cpu_engine(), a, b, c, attributes};
#else
  return {dnnl::matmul::desc(a, b, c), attributes, cpu_engine()};
#endif
}

memory::desc operand_desc(int64_t rows, int64_t cols, bool transposed) {
  return {{rows, cols},
          memory::data_type::bf16,
          transposed ? memory::format_tag::ba : memory::format_tag::ab};
}

// oneDNN's instruction sets are sets of bits, each holding those below it.
bool includes(unsigned set, dnnl::cpu_isa wanted) {
  const auto bits = static_cast<unsigned>(wanted);
  return (set & bits) == bits;
}

dnnl::cpu_isa onednn_name(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::amx: return dnnl::cpu_isa::avx512_core_amx;
    case CpuIsa::avx512_bf16: return dnnl::cpu_isa::avx512_core_bf16;
    case CpuIsa::avx512: return dnnl::cpu_isa::avx512_core;
    default: return dnnl::cpu_isa::avx2;
  }
}

CpuIsa highest_in(unsigned set) {
  for (const CpuIsa isa : {CpuIsa::amx, CpuIsa::avx512_bf16, CpuIsa::avx512, CpuIsa::avx2}) {
    if (includes(set, onednn_name(isa))) return isa;
  }
  return CpuIsa::below_avx2;
}

// What oneDNN and our own kernels may use: HEARTH_ISA lowers it, once, before the first product. The
// lowered oneDNN generates the code of a machine that has no more.
unsigned choose_instructions() {
  const char* text = std::getenv("HEARTH_ISA");
  const bool is_set = text != nullptr && *text != '\0';
  const CpuIsa asked = is_set ? parse_isa(text) : CpuIsa::amx;
  if (is_set) dnnl::set_max_cpu_isa(onednn_name(asked));
  const auto effective = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  if (is_set) require_isa(asked, highest_in(effective));
  HEARTH_CHECK(highest_in(effective) <= asked, "oneDNN was used before HEARTH_ISA was read");
  return effective;
}

bool has_isa(dnnl::cpu_isa wanted) {
  static const unsigned effective = choose_instructions();
  return includes(effective, wanted);
}

// The product of one padded shape, with the memory objects that its calls point at their data.
class Product {
 public:
  Product(int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const auto desc =
        matmul_desc(operand_desc(m, k, transpose_a), operand_desc(k, n, transpose_b),
                    {{m, n}, memory::data_type::f32, memory::format_tag::ab}, attributes);
    HEARTH_CHECK(desc.scratchpad_desc().get_size() <= kLibraryScratch,
                 "oneDNN asks for more scratch than was declared");
    primitive_ = dnnl::matmul(desc);
    for (const auto& [name, shape] : {std::pair{DNNL_ARG_SRC, desc.src_desc()},
                                      {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                                      {DNNL_ARG_DST, desc.dst_desc()},
                                      {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}}) {
      arguments_.emplace(name, memory(shape, cpu_engine(), nullptr));
    }
  }

  void run(void* a, void* b, float* c, void* scratch) {
    arguments_.at(DNNL_ARG_SRC).set_data_handle(a);
    arguments_.at(DNNL_ARG_WEIGHTS).set_data_handle(b);
    arguments_.at(DNNL_ARG_DST).set_data_handle(c);
    arguments_.at(DNNL_ARG_SCRATCHPAD).set_data_handle(scratch);
    primitive_.execute(stream_, arguments_);
  }

 private:
  dnnl::matmul primitive_;
  dnnl::stream stream_{cpu_engine()};
  std::unordered_map<int, memory> arguments_;
};

// oneDNN 2.6 generates the code of a product into memory that it never checks: where the system refuses
// it, oneDNN writes through a null pointer. A product takes up to 1.2 MiB, so more than that must be
// there before oneDNN is asked, and no other product may be made meanwhile.
constexpr size_t kRoomForCode = 8u << 20;

std::unique_ptr<Product> make_product(int64_t m, int64_t n, int64_t k, bool transpose_a,
                                      bool transpose_b) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  ::operator delete(::operator new(kRoomForCode));  // raises bad_alloc; nothing touches it
  try {
    return std::make_unique<Product>(m, n, k, transpose_a, transpose_b);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
    throw;
  }
}

// Each thread has its own table, so that no lock is taken. Made inside a tile, where OpenMP has
// one thread: the blocking that oneDNN chooses must not depend on the number of workers.
Product& product(int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b) {
  thread_local std::unordered_map<int64_t, std::unique_ptr<Product>> table;
  const int64_t key = (((m * 4096 + n) * 4096 + k) * 2 + transpose_a) * 2 + transpose_b;
  auto& entry = table[key];
  if (!entry) entry = make_product(m, n, k, transpose_a, transpose_b);
  return *entry;
}

// The operand as dense bf16 in its own orientation, filled up with zeros.
bf16* to_dense(const Operand& x, bf16* target, float* row) {
  const ConstView& m = x.memory;
  const int64_t width = padded(m.cols);
  for (int64_t r = 0; r < m.rows; ++r) {
    bf16* to = target + r * width;
    if (m.dtype == DType::bf16) {
      std::memcpy(to, x.row<bf16>(r), static_cast<size_t>(m.cols) * sizeof(bf16));
    } else {
      const auto* from = static_cast<const std::byte*>(m.data) +
                         static_cast<size_t>(x.index(r) * m.stride) * size_of(m.dtype);
      load_row(m.dtype, from, true, row, m.cols);
      for (int64_t i = 0; i < m.cols; ++i) {
        to[i].bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(row[i]) >> 16);
      }
    }
    std::fill(to + m.cols, to + width, bf16{});
  }
  std::fill(target + m.rows * width, target + padded(m.rows) * width, bf16{});
  return target;
}

// The same of at most Blocks::kLargest rows and columns: so few shapes exist.
void multiply_tile(Scratch& scratch, const Operand& a, const Operand& b, float* c, int64_t ldc,
                   bool accumulate) {
  Scratch::Frame frame(scratch);
  const int64_t m = a.rows(), n = b.cols(), k = a.cols();
  auto* left = scratch.take<bf16>(padded(Blocks::kLargest) * kDepth);
  auto* right = scratch.take<bf16>(padded(Blocks::kLargest) * kDepth);
  auto* sum = scratch.take<float>(padded(m) * padded(n));
  auto* row = scratch.take<float>(kDepth);
  auto* library = scratch.take<std::byte>(kLibraryScratch);
  for (int64_t p = 0; p < k; p += kDepth) {
    const int64_t depth = std::min(kDepth, k - p);
    product(padded(m), padded(n), padded(depth), a.transposed, b.transposed)
        .run(to_dense(a.block(0, m, p, depth), left, row),
             to_dense(b.block(p, depth, 0, n), right, row), sum, library);
    for (int64_t i = 0; i < m; ++i) {
      const float* from = sum + i * padded(n);
      float* to = c + i * ldc;
      if (accumulate || p > 0) {
        for (int64_t j = 0; j < n; ++j) to[j] += from[j];
      } else {
        std::copy_n(from, n, to);
      }
    }
  }
}

}  // namespace

std::string onednn_isa() {
  using dnnl::cpu_isa;
  for (const auto& [isa, name] : {std::pair{cpu_isa::avx512_core_amx, "avx512_core_amx"},
                                  {cpu_isa::avx512_core_bf16, "avx512_core_bf16"},
                                  {cpu_isa::avx512_core_vnni, "avx512_core_vnni"},
                                  {cpu_isa::avx512_core, "avx512_core"},
                                  {cpu_isa::avx2_vnni, "avx2_vnni"},
                                  {cpu_isa::avx2, "avx2"}}) {
    if (has_isa(isa)) return name;
  }
  return "below avx2";
}

bool onednn_has_avx512() { return has_isa(dnnl::cpu_isa::avx512_core); }
bool onednn_has_fast_bf16() { return has_isa(dnnl::cpu_isa::avx512_core_bf16); }

std::string onednn_library_version() {
  const auto* v = dnnl::version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

void onednn_multiply_bf16(Scratch& scratch, const Operand& a, const Operand& b, float* c,
                          int64_t ldc, bool accumulate) {
  const Blocks rows(a.rows()), columns(b.cols());
  const int64_t k = a.cols();
  for (int64_t j = 0; j < columns.count(); ++j) {
    const Operand right = b.block(0, k, columns.begin(j), columns.length(j));
    for (int64_t i = 0; i < rows.count(); ++i) {
      multiply_tile(scratch, a.block(rows.begin(i), rows.length(i), 0, k), right,
                    c + rows.begin(i) * ldc + columns.begin(j), ldc, accumulate);
    }
  }
}

size_t onednn_multiply_scratch() {
  const auto side = static_cast<size_t>(padded(Blocks::kLargest));
  return 2 * side * kDepth * sizeof(bf16) + side * side * sizeof(float) + kDepth * sizeof(float) +
         kLibraryScratch + 5 * kArenaAlignment;
}

}  // namespace hearth
