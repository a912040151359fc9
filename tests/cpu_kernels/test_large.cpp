// Sizes that cross every block boundary of the tiles, against the reference, which tests/ops covers
// with small ones; and that a row's result does not depend on the rows beside it.
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <optional>
#include <vector>

#include "cpu_kernels/cpu_ops.h"
#include "cpu_kernels/expert_rows.h"
#include "cpu_kernels/product.h"
#include "reference/reference_ops.h"
#include "support/tensor.h"
#include "support/test_stream.h"

using namespace hearth;
using namespace hearth::test;

namespace {

using Call = std::function<void(const OpSet&, Stream&, Tensors&)>;
using Need = std::function<ScratchNeed(const OpSet&)>;

// Runs the call on both op sets, the fast one on three workers, and compares all tensors.
void compare(const Tensors& tensors, const Need& need, const Call& call, double tolerance = 2e-5) {
  Tensors expected = tensors, actual = tensors;
  TestStream slow(1, need(reference_ops())), fast(3, need(cpu_ops()));
  call(reference_ops(), slow, expected);
  call(cpu_ops(), fast, actual);
  for (const auto& [name, tensor] : expected) {
    CAPTURE(name);
    CHECK(difference(actual.at(name), tensor, tolerance) == "");
    CHECK(actual.at(name).canaries_alive());
  }
}

void random(Tensors& t, const std::string& name, int64_t rows, int64_t cols) {
  t[name] = Tensor(DType::f32, rows, cols, 1).fill_random(name);
}

}  // namespace

TEST_CASE("large: linear") {
  Tensors t;
  random(t, "x", 470, 530);
  random(t, "dy", 470, 250);
  random(t, "y", 470, 250);
  random(t, "dx", 470, 530);
  random(t, "w", 250, 530);
  random(t, "b", 1, 250);
  random(t, "dw", 250, 530);
  random(t, "db", 1, 250);
  compare(
      t, [](const OpSet& ops) { return ops.linear_scratch(470, 250, 530, 0); },
      [](const OpSet& ops, Stream& s, Tensors& v) {
        const LinearView w{v["w"].view(), v["b"].view(), Compute::f32};
        ops.linear_forward(s, v["x"].view(), w, v["y"].view());
        ops.linear_dgrad(s, v["dy"].view(), w, v["dx"].view(), true);
        ops.linear_wgrad(s, v["dy"].view(), v["x"].view(), w, {v["dw"].view(), v["db"].view()});
      });
}

TEST_CASE("large: the scratch of experts in bf16 is the same on all machines") {
  const auto bytes = [](Compute compute) {
    return cpu_ops().experts_scratch(4096, 8, 256, 128, 0, compute, 512).shared;
  };
  for (const std::optional<bool> has_bf16 :
       {std::optional<bool>(), std::optional(true), std::optional(false)}) {
    assume_bf16_products(has_bf16);
    // x and dy, 512 rows each, and half of h of all rows more.
    CHECK(bytes(Compute::bf16) == bytes(Compute::f32) + 2 * 2 * 512 * 256 + 2 * 4096 * 128);
  }
  assume_bf16_products({});
}

TEST_CASE("large: experts with several row blocks, one row and none") {
  const std::vector<int64_t> rows = {230, 0, 1, 300};
  constexpr int64_t kHidden = 260, kWidth = 240;
  Tensors t;
  std::vector<double> offsets = {0};
  for (const int64_t n : rows) offsets.push_back(offsets.back() + static_cast<double>(n));
  const auto all = static_cast<int64_t>(offsets.back());
  t["offsets"] = Tensor(DType::i32, 1, std::ssize(offsets)).assign(offsets);
  for (const char* name : {"x", "y", "dy", "dx"}) random(t, name, all, kHidden);
  for (const char* name : {"gate", "up"}) random(t, name, all, kWidth);
  for (const char* name : {"weight", "dweight"}) random(t, name, 1, all);
  const auto name = [](const char* what, size_t e) { return what + std::to_string(e); };
  for (size_t e = 0; e < rows.size(); ++e) {
    for (const char* what : {"wg", "wu", "dwg", "dwu"}) random(t, name(what, e), kWidth, kHidden);
    for (const char* what : {"wd", "dwd"}) random(t, name(what, e), kHidden, kWidth);
  }
  compare(
      t,
      [&](const OpSet& ops) {
        return ops.experts_scratch(all, std::ssize(rows), kHidden, kWidth, 0, Compute::f32, all);
      },
      [&](const OpSet& ops, Stream& s, Tensors& v) {
        std::vector<ExpertView> experts;
        std::vector<ExpertGradient> gradients;
        const auto map = [&](const char* what, size_t e) {
          return LinearView{v[name(what, e)].view(), {}, Compute::f32};
        };
        for (size_t e = 0; e < rows.size(); ++e) {
          experts.push_back({map("wg", e), map("wu", e), map("wd", e)});
          const auto gradient = [&](const char* what) {
            return LinearGradient{.weight = v[name(what, e)].view()};
          };
          gradients.push_back({gradient("dwg"), gradient("dwu"), gradient("dwd")});
        }
        ops.experts_forward(s, v["x"].view(), v["offsets"].view(), experts, v["gate"].view(),
                            v["up"].view(), v["y"].view());
        ops.experts_backward(s, v["dy"].view(), v["weight"].view(), v["x"].view(),
                             v["offsets"].view(), experts, v["gate"].view(), v["up"].view(),
                             v["dx"].view(), v["dweight"].view(), gradients);
      },
      1e-4);
}

namespace {

/// The pieces of experts with these segments, and whether all lies where it should.
struct CutRows {
  std::vector<std::vector<ExpertPiece>> pieces;  // of each segment of each expert
  int64_t chunks = 0;
};

CutRows cut(const std::vector<int32_t>& offsets, int64_t segments, int64_t width) {
  const int64_t runs = std::ssize(offsets) - 1, first = offsets.front(), all = offsets.back();
  std::vector<std::byte> memory(ExpertChunks::scratch_bytes(all - first, runs) + 64);
  Scratch scratch(memory.data() + 64 - reinterpret_cast<uintptr_t>(memory.data()) % 64,
                  memory.size() - 64);
  const std::vector<ExpertView> experts(static_cast<size_t>(runs / segments));
  ExpertChunks chunks(scratch, {ConstView(offsets.data(), DType::i32, 1, runs + 1), segments},
                      experts, width, all);
  CutRows result;
  result.pieces.resize(static_cast<size_t>(runs));
  int64_t row = first;
  for (; chunks.next(); ++result.chunks) {
    CHECK((chunks.count() > 0 && chunks.count() <= ExpertChunks::piece_rows(width)));
    int64_t in_pieces = row;
    size_t block = 0;
    for (const ExpertGroup& group : chunks.groups()) {
      int64_t in_blocks = in_pieces;
      for (const ExpertPiece& piece : group.pieces) {
        const auto run = static_cast<size_t>(group.expert * segments + piece.segment);
        CHECK(piece.rows.begin == in_pieces);
        CHECK((piece.rows.count > 0 && piece.rows.begin >= offsets[run]));
        in_pieces += piece.rows.count;
        CHECK(in_pieces <= offsets[run + 1]);
        result.pieces[run].push_back(piece);
      }
      for (; in_blocks < in_pieces; ++block) {
        REQUIRE(block < chunks.blocks().size());
        const ExpertBlock& b = chunks.blocks()[block];
        CHECK((b.expert == group.expert && b.row == in_blocks));
        CHECK((b.at.count > 0 && b.at.count <= ExpertBlock::kLargest));
        in_blocks += b.at.count;
      }
      CHECK(in_blocks == in_pieces);
    }
    CHECK(block == chunks.blocks().size());
    row += chunks.count();
    CHECK(in_pieces == row);
  }
  CHECK(row == all);
  return result;
}

}  // namespace

TEST_CASE("large: every row is in one block and one piece of one chunk") {
  const int64_t width = int64_t{16} << 20 >> 9;  // chunks of 512 rows
  CHECK(ExpertChunks::piece_rows(width) == 512);
  for (const int64_t segments : {1, 2, 4}) {
    const auto result = cut({0, 0, 5, 705, 705, 1405, 1406, 1700, 1700}, segments, width);
    CHECK(result.chunks > 3);
  }
  CHECK(cut({7, 7}, 1, width).chunks == 0);
  CHECK(cut({20, 620}, 1, width).chunks == 2);
}

TEST_CASE("large: pieces are cut by the rows of their segment alone") {
  const int64_t width = 14336;  // chunks of 1,024 rows
  const std::vector<int64_t> lengths = {700, 900, 0, 1400, 30, 512, 2100, 1025, 1};
  for (const int64_t segments : {1, 3, 9}) {
    std::vector<int32_t> offsets = {40};
    for (const int64_t n : lengths) offsets.push_back(offsets.back() + static_cast<int32_t>(n));
    const CutRows together = cut(offsets, segments, width);
    for (size_t run = 0; run < lengths.size(); ++run) {
      const CutRows alone = cut({0, static_cast<int32_t>(lengths[run])}, 1, width);
      REQUIRE(alone.pieces[0].size() == together.pieces[run].size());
      for (size_t i = 0; i < alone.pieces[0].size(); ++i) {
        const Range &a = alone.pieces[0][i].rows, &b = together.pieces[run][i].rows;
        CHECK((a.begin == b.begin - offsets[run] && a.count == b.count));
      }
    }
  }
}

TEST_CASE("large: attention over several blocks of keys and queries") {
  struct Sequence {
    int64_t queries, keys;
  };
  struct Case {
    AttentionShape shape;
    std::vector<Sequence> sequences;
  };
  const Case cases[] = {
      {{6, 2, 40, 0, 0.2}, {{250, 250}, {1, 1}, {130, 130}}},
      {{4, 4, 24, 100, 0.3}, {{300, 300}}},
      {{4, 1, 16, 0, 0.3}, {{1, 400}, {0, 0}, {3, 230}, {40, 120}}},
      {{2, 2, 300, 30, 0.1}, {{120, 130}}},
  };
  for (const Case& c : cases) {
    Tensors t;
    std::vector<double> query = {0}, key = {0};
    for (const Sequence& s : c.sequences) {
      query.push_back(query.back() + static_cast<double>(s.queries));
      key.push_back(key.back() + static_cast<double>(s.keys));
    }
    const auto queries = static_cast<int64_t>(query.back()),
               keys = static_cast<int64_t>(key.back());
    t["query"] = Tensor(DType::i32, 1, std::ssize(query)).assign(query);
    t["key"] = Tensor(DType::i32, 1, std::ssize(key)).assign(key);
    const int64_t width = c.shape.heads * c.shape.head_dim;
    const int64_t kv_width = c.shape.kv_heads * c.shape.head_dim;
    for (const char* name : {"q", "out", "dout", "dq"}) random(t, name, queries, width);
    for (const char* name : {"k", "v", "dk", "dv"}) random(t, name, keys, kv_width);
    random(t, "log_sum", queries, c.shape.heads);
    compare(
        t, [&](const OpSet& ops) { return ops.attention_scratch(c.shape, queries, keys); },
        [&](const OpSet& ops, Stream& s, Tensors& v) {
          const SequenceOffsets offsets{v["query"].view(), v["key"].view()};
          ops.attention_forward(s, c.shape, offsets, v["q"].view(), v["k"].view(), v["v"].view(),
                                v["out"].view(), v["log_sum"].view());
          ops.attention_backward(s, c.shape, offsets, v["dout"].view(), v["q"].view(),
                                 v["k"].view(), v["v"].view(), v["out"].view(), v["log_sum"].view(),
                                 v["dq"].view(), v["dk"].view(), v["dv"].view());
        },
        1e-4);
  }
}

TEST_CASE("large: cross-entropy over chunks of rows and pieces of the vocabulary") {
  struct Shape {
    int64_t rows, hidden, vocabulary;
  };
  // Three pieces; and a vocabulary of which 32 rows are a chunk.
  for (const Shape& c : {Shape{50, 37, 17000}, Shape{40, 3, 500000}}) {
    Tensors t;
    random(t, "x", c.rows, c.hidden);
    random(t, "dx", c.rows, c.hidden);
    random(t, "w", c.vocabulary, c.hidden);
    t["dw"] = Tensor(DType::f32, c.vocabulary, c.hidden).fill(0);
    t["loss"] = Tensor(DType::f64, 1, 1);
    std::vector<double> labels;
    for (int64_t i = 0; i < c.rows; ++i) {
      labels.push_back(i % 7 == 3 ? -100.0 : static_cast<double>(i * 7919 % c.vocabulary));
    }
    t["labels"] = Tensor(DType::i32, 1, c.rows).assign(labels);
    compare(
        t,
        [&](const OpSet& ops) {
          return ops.cross_entropy_scratch(c.rows, c.hidden, c.vocabulary, 0);
        },
        [&](const OpSet& ops, Stream& s, Tensors& v) {
          ops.cross_entropy(s, v["x"].view(), {v["w"].view(), {}, Compute::f32}, v["labels"].view(),
                            0.5, v["loss"].view(), v["dx"].view(), {.weight = v["dw"].view()});
        },
        1e-4);
  }
}

// Not promised by the op set, but what keeps a token's bits when its batch is cut otherwise. Few rows
// go through another product (product.cpp), whose sums are formed in another order.
TEST_CASE("large: a row's bits do not depend on how many rows stand beside it") {
  constexpr int64_t kRows = 300, kIn = 520, kOut = 230;
  Tensors t;
  random(t, "x", kRows, kIn);
  random(t, "w", kOut, kIn);
  random(t, "dy", kRows, kOut);
  const LinearView w{t["w"].view(), {}, Compute::f32};
  TestStream stream(2, cpu_ops().linear_scratch(kRows, kOut, kIn, 0));
  const auto run = [&](int64_t first, int64_t n, Tensor& y, Tensor& dx) {
    const View out = y.view().slice(first, n), in = dx.view().slice(first, n);
    cpu_ops().linear_forward(stream, t["x"].view().slice(first, n), w, out);
    cpu_ops().linear_dgrad(stream, t["dy"].view().slice(first, n), w, in, false);
  };
  Tensor y(DType::f32, kRows, kOut), dx(DType::f32, kRows, kIn);
  run(0, kRows, y, dx);
  for (const int64_t step : {64, 120, 225}) {
    Tensor y2(DType::f32, kRows, kOut), dx2(DType::f32, kRows, kIn);
    for (int64_t first = 0; first < kRows; first += step) {
      run(first, std::min(step, kRows - first), y2, dx2);
    }
    CAPTURE(step);
    CHECK(y2.same_bits(y));
    CHECK(dx2.same_bits(dx));
  }
}
