#include "cpu_kernels/onednn_shim.h"

#include <dnnl.hpp>

#include <algorithm>
#include <array>
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

// Rows and columns of every call, whatever the product has: the library chooses its blocking by them,
// and so the bits of an element. What is missing is filled up with zeros.
constexpr int64_t kRows = 64, kColumns = 128;
// The depth is filled up to a multiple of this, so that few shapes exist.
constexpr int64_t kPadding = 32;
constexpr int64_t kDepth = 1024;              // of k in one call
constexpr int64_t kCalls = 3;                 // side by side, which read the same rows of A
constexpr size_t kLibraryScratch = 4u << 20;  // what a call of these sizes may ask for
constexpr size_t kPackedWeight = sizeof(float) * kDepth * kColumns;

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

memory::desc matrix(memory::data_type type, int64_t rows, int64_t cols, bool transposed,
                    int64_t stride) {
  return {{rows, cols}, type, transposed ? memory::dims{1, stride} : memory::dims{stride, 1}};
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

bool is_intel() {
  __builtin_cpu_init();
  return __builtin_cpu_is("intel") != 0;
}

// What oneDNN and our own kernels may use: HEARTH_ISA lowers it, once, before the first product. The
// lowered oneDNN generates the code of a machine that has no more. What is preferred lowers our own
// choice alone.
unsigned choose_instructions() {
  const char* text = std::getenv("HEARTH_ISA");
  const bool is_set = text != nullptr && *text != '\0';
  const CpuIsa asked = is_set ? parse_isa(text) : CpuIsa::amx;
  if (is_set) dnnl::set_max_cpu_isa(onednn_name(asked));
  const auto effective = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const CpuIsa machine = highest_in(effective);
  if (is_set) require_isa(asked, machine);
  HEARTH_CHECK(machine <= asked, "oneDNN was used before HEARTH_ISA was read");
  const CpuIsa preferred = preferred_isa(machine, is_intel());
  return is_set || preferred == machine ? effective : static_cast<unsigned>(onednn_name(preferred));
}

bool has_isa(dnnl::cpu_isa wanted) {
  static const unsigned effective = choose_instructions();
  return includes(effective, wanted);
}

// What a call computes: kRows rows by kColumns, with the weight packed as the library likes it.
struct CallShape {
  bool bf16 = false;  // the operands
  int64_t k = 0;
  bool transpose_a = false, transpose_b = false;
  int64_t ldb = 0;

  bool operator==(const CallShape&) const = default;
};

struct CallShapeHash {
  size_t operator()(const CallShape& s) const {
    size_t all = 0;
    for (const int64_t part : {s.k, s.ldb}) all = all * 1000003 + static_cast<size_t>(part);
    return all * 8 + s.bf16 * 4u + s.transpose_a * 2u + s.transpose_b;
  }
};

// The product of one shape and the packing of its weight, with the memory objects that calls point
// at their data.
class Call {
 public:
  explicit Call(const CallShape& s) {
    const auto type = s.bf16 ? memory::data_type::bf16 : memory::data_type::f32;
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const auto product =
        matmul_desc(matrix(type, kRows, s.k, s.transpose_a, s.transpose_a ? kRows : s.k),
                    {{s.k, kColumns}, type, memory::format_tag::any},
                    matrix(memory::data_type::f32, kRows, kColumns, false, kColumns), attributes);
    const auto plain = matrix(type, s.k, kColumns, s.transpose_b, s.ldb);
    const dnnl::reorder::primitive_desc pack(cpu_engine(), plain, cpu_engine(),
                                             product.weights_desc(), attributes);
    HEARTH_CHECK(product.scratchpad_desc().get_size() <= kLibraryScratch &&
                     pack.scratchpad_desc().get_size() <= kLibraryScratch &&
                     product.weights_desc().get_size() <= kPackedWeight,
                 "oneDNN asks for more scratch than was declared");
    product_ = dnnl::matmul(product);
    pack_ = dnnl::reorder(pack);
    for (const auto& [name, shape] : {std::pair{DNNL_ARG_SRC, product.src_desc()},
                                      {DNNL_ARG_WEIGHTS, product.weights_desc()},
                                      {DNNL_ARG_DST, product.dst_desc()},
                                      {DNNL_ARG_SCRATCHPAD, product.scratchpad_desc()}}) {
      of_product_.emplace(name, memory(shape, cpu_engine(), nullptr));
    }
    for (const auto& [name, shape] : {std::pair{DNNL_ARG_FROM, plain},
                                      {DNNL_ARG_TO, product.weights_desc()},
                                      {DNNL_ARG_SCRATCHPAD, pack.scratchpad_desc()}}) {
      of_pack_.emplace(name, memory(shape, cpu_engine(), nullptr));
    }
  }

  void pack(const void* b, void* packed, void* scratch) {
    of_pack_.at(DNNL_ARG_FROM).set_data_handle(const_cast<void*>(b));
    of_pack_.at(DNNL_ARG_TO).set_data_handle(packed);
    of_pack_.at(DNNL_ARG_SCRATCHPAD).set_data_handle(scratch);
    pack_.execute(stream_, of_pack_);
  }
  void run(void* a, void* packed, float* c, void* scratch) {
    of_product_.at(DNNL_ARG_SRC).set_data_handle(a);
    of_product_.at(DNNL_ARG_WEIGHTS).set_data_handle(packed);
    of_product_.at(DNNL_ARG_DST).set_data_handle(c);
    of_product_.at(DNNL_ARG_SCRATCHPAD).set_data_handle(scratch);
    product_.execute(stream_, of_product_);
  }

 private:
  dnnl::matmul product_;
  dnnl::reorder pack_;
  dnnl::stream stream_{cpu_engine()};
  std::unordered_map<int, memory> of_product_, of_pack_;
};

// oneDNN 2.6 generates the code of a product into memory that it never checks: where the system refuses
// it, oneDNN writes through a null pointer. A product takes up to 1.2 MiB, so more than that must be
// there before oneDNN is asked, and no other product may be made meanwhile.
constexpr size_t kRoomForCode = 8u << 20;

std::unique_ptr<Call> make_call(const CallShape& shape) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  ::operator delete(::operator new(kRoomForCode));  // raises bad_alloc; nothing touches it
  try {
    return std::make_unique<Call>(shape);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
    throw;
  }
}

// Each thread has its own table, so that no lock is taken. Made inside a tile, where OpenMP has
// one thread: the blocking that oneDNN chooses must not depend on the number of workers.
Call& call_of(const CallShape& shape) {
  thread_local std::unordered_map<CallShape, std::unique_ptr<Call>, CallShapeHash> table;
  auto& entry = table[shape];
  if (!entry) entry = make_call(shape);
  return *entry;
}

void store_row(const float* from, bf16* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    to[i].bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(from[i]) >> 16);
  }
}
void store_row(const float* from, float* to, int64_t n) { std::copy_n(from, n, to); }

// The operand in its own orientation as rows of `width` elements, filled up with zeros to `rows`.
template <class T>
T* to_dense(const Operand& x, int64_t rows, int64_t width, T* target, float* row) {
  constexpr bool kRound = std::is_same_v<T, bf16>;
  const ConstView& m = x.memory;
  for (int64_t r = 0; r < m.rows; ++r) {
    T* to = target + r * width;
    const auto* from = static_cast<const std::byte*>(m.data) +
                       static_cast<size_t>(x.index(r) * m.stride) * size_of(m.dtype);
    if (m.dtype == dtype_of<T>()) {
      std::memcpy(to, from, static_cast<size_t>(m.cols) * sizeof(T));
    } else {
      load_row(m.dtype, from, kRound, row, m.cols);
      store_row(row, to, m.cols);
    }
    std::fill(to + m.cols, to + width, T{});
  }
  std::fill(target + m.rows * width, target + rows * width, T{});
  return target;
}

// The scratch of a product on one worker.
template <class T>
struct Buffers {
  T *left, *right;
  float *sum, *row;
  std::byte *packed, *library;

  explicit Buffers(Scratch& scratch)
      : left(scratch.take<T>(kRows * kDepth)),
        right(scratch.take<T>(kColumns * kDepth)),
        sum(scratch.take<float>(kRows * kColumns)),
        row(scratch.take<float>(kDepth)),
        packed(scratch.take<std::byte>(kCalls * kPackedWeight)),
        library(scratch.take<std::byte>(kLibraryScratch)) {}
  static size_t bytes() {
    return (kRows + kColumns) * kDepth * sizeof(T) + (kRows * kColumns + kDepth) * sizeof(float) +
           kCalls * kPackedWeight + kLibraryScratch + 6 * kArenaAlignment;
  }
};

// Packs a weight of at most kColumns columns, from where it lies if the library can read it there.
template <class T>
Call& pack(const Buffers<T>& of, bool transposed_a, const Operand& b, std::byte* packed) {
  CallShape shape{.bf16 = std::is_same_v<T, bf16>,
                  .k = padded(b.rows()),
                  .transpose_a = transposed_a,
                  .transpose_b = b.transposed,
                  .ldb = b.memory.stride};
  const bool in_place =
      !b.index && b.memory.dtype == dtype_of<T>() && b.cols() == kColumns && b.rows() == shape.k;
  const void* weight = b.memory.data;
  if (!in_place) {
    shape.ldb = b.transposed ? shape.k : kColumns;
    weight = to_dense(b, b.transposed ? kColumns : shape.k, shape.ldb, of.right, of.row);
  }
  Call& call = call_of(shape);
  call.pack(weight, packed, of.library);
  return call;
}

void put_rows(const float* sum, int64_t rows, int64_t columns, float* c, int64_t ldc, bool add) {
  for (int64_t r = 0; r < rows; ++r, sum += kColumns, c += ldc) {
    if (add) {
      for (int64_t j = 0; j < columns; ++j) c[j] += sum[j];
    } else {
      std::copy_n(sum, columns, c);
    }
  }
}

// A product of at most kCalls * kColumns columns and kDepth of k.
template <class T>
void multiply_block(const Buffers<T>& of, const Operand& a, const Operand& b, float* c, int64_t ldc,
                    bool add) {
  const int64_t m = a.rows(), n = b.cols(), k = a.cols();
  std::array<Call*, kCalls> calls{};
  const auto width = [&](int64_t call) { return std::min(kColumns, n - call * kColumns); };
  const auto packed = [&](int64_t call) {
    return of.packed + static_cast<size_t>(call) * kPackedWeight;
  };
  const int64_t count = (n + kColumns - 1) / kColumns;
  for (int64_t i = 0; i < count; ++i) {
    calls[static_cast<size_t>(i)] =
        &pack(of, a.transposed, b.block(0, k, i * kColumns, width(i)), packed(i));
  }
  for (int64_t i = 0; i < m; i += kRows) {
    const int64_t rows = std::min(kRows, m - i);
    T* const left = to_dense(a.block(i, rows, 0, k), a.transposed ? padded(k) : kRows,
                             a.transposed ? kRows : padded(k), of.left, of.row);
    for (int64_t j = 0; j < count; ++j) {
      calls[static_cast<size_t>(j)]->run(left, packed(j), of.sum, of.library);
      put_rows(of.sum, rows, width(j), c + i * ldc + j * kColumns, ldc, add);
    }
  }
}

template <class T>
void multiply_as(Scratch& scratch, const Operand& a, const Operand& b, float* c, int64_t ldc,
                 bool accumulate) {
  Scratch::Frame frame(scratch);
  const Buffers<T> buffers(scratch);
  const int64_t k = a.cols(), n = b.cols();
  for (int64_t j = 0; j < n; j += kCalls * kColumns) {
    for (int64_t p = 0; p < k; p += kDepth) {
      const int64_t depth = std::min(kDepth, k - p), width = std::min(kCalls * kColumns, n - j);
      multiply_block(buffers, a.block(0, a.rows(), p, depth), b.block(p, depth, j, width), c + j,
                     ldc, accumulate || p > 0);
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
bool onednn_has_amx() { return has_isa(dnnl::cpu_isa::avx512_core_amx); }
bool onednn_has_fast_bf16() { return has_isa(dnnl::cpu_isa::avx512_core_bf16); }

std::string onednn_library_version() {
  const auto* v = dnnl::version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

void onednn_multiply(Scratch& scratch, bool bf16, const Operand& a, const Operand& b, float* c,
                     int64_t ldc, bool accumulate) {
  if (bf16) return multiply_as<hearth::bf16>(scratch, a, b, c, ldc, accumulate);
  multiply_as<float>(scratch, a, b, c, ldc, accumulate);
}

size_t onednn_multiply_scratch() { return Buffers<float>::bytes(); }

}  // namespace hearth
