#include <cmath>

#include "base/sanitized.h"
#include "op_test.h"

using namespace hearth;
using namespace hearth::test;

namespace {

/// Numbers of queries and keys of each sequence.
using Lengths = std::vector<std::pair<int64_t, int64_t>>;

AttentionShape in(Compute compute, AttentionShape shape) {
  shape.compute = compute;
  return shape;
}

OpTest attention(const Lengths& lengths, const AttentionShape& shape) {
  OpTest test;
  std::vector<double> query = {0}, key = {0};
  int64_t longest = 0;
  for (const auto& [queries, keys] : lengths) {
    query.push_back(query.back() + static_cast<double>(queries));
    key.push_back(key.back() + static_cast<double>(keys));
    longest = std::max(longest, keys);
  }
  const auto tokens = static_cast<int64_t>(query.back());
  const auto all_keys = static_cast<int64_t>(key.back());
  const auto n = static_cast<int64_t>(query.size());
  test.integers("query", 1, n, query);
  test.integers("key", 1, n, key);
  for (const char* name : {"q", "out", "dout", "dq"}) {
    test.random(name, tokens, shape.heads * shape.head_dim);
  }
  for (const char* name : {"k", "v", "dk", "dv"}) {
    test.random(name, all_keys, shape.kv_heads * shape.head_dim);
  }
  test.random("log_sum", tokens, shape.heads);
  test.described("attention", "sequences", n - 1, "queries", tokens, "keys", all_keys, "heads",
                 shape.heads, "kv_heads", shape.kv_heads, "head_dim", shape.head_dim, "window",
                 shape.window);
  test.outputs = {"out"};
  test.inputs = {"q", "k", "v"};
  test.products = true;
  test.bf16_tolerance = 4e-2;  // of the largest error: weights are rounded, or nothing is
  test.scratch = [=](const OpSet& ops) {
    const auto need = [&](Compute compute) {
      return ops.attention_scratch(in(compute, shape), std::max(tokens, all_keys), longest);
    };
    return max_of(need(Compute::f32), need(Compute::bf16));
  };
  test.forward = [=](const Run& r) {
    r.ops.attention_forward(r.stream, in(r.compute, shape), {r.view("query"), r.view("key")},
                            r.view("q"), r.view("k"), r.view("v"), r.view("out"),
                            r.view("log_sum"));
  };
  test.backward = [=](const Run& r) {
    r.ops.attention_backward(r.stream, in(r.compute, shape), {r.view("query"), r.view("key")},
                             r.view("dout"), r.view("q"), r.view("k"), r.view("v"), r.view("out"),
                             r.view("log_sum"), r.view("dq"), r.view("dk"), r.view("dv"));
  };
  // Two products forward, five backward, of the pairs that a causal mask leaves.
  double pairs = 0;
  for (const auto& [queries, keys] : lengths) {
    pairs += static_cast<double>(queries) * (static_cast<double>(keys + keys - queries + 1) / 2);
  }
  const double product = 2 * pairs * static_cast<double>(shape.heads * shape.head_dim);
  test.timed = {{"forward", test.forward, 2 * product}, {"backward", test.backward, 5 * product}};
  return test;
}

AttentionShape shape_of(int64_t heads, int64_t kv_heads, int64_t d, int64_t window = 0) {
  return {.heads = heads, .kv_heads = kv_heads, .head_dim = d, .window = window, .scale = 0.7};
}

/// Whether row t of `out` changes when row j of the keys and values does.
bool sees(const OpSet& ops, Stream& stream, const OpTest& test, int64_t t, int64_t j) {
  const Tensors before = run_op(ops, stream, test.tensors, test.forward);
  Tensors moved = test.tensors;
  for (const char* name : {"k", "v"}) {
    for (int64_t c = 0; c < moved.at(name).cols(); ++c) moved.at(name).set(j, c, 3);
  }
  const Tensors after = run_op(ops, stream, moved, test.forward);
  for (int64_t c = 0; c < before.at("out").cols(); ++c) {
    if (before.at("out").get(t, c) != after.at("out").get(t, c)) return true;
  }
  return false;
}

// One sequence, and four packed ones, of 2,048 tokens.
const bool added =
    add_perf_cases({{[] {
                       return attention({{2048, 2048}}, shape_of(16, 4, 128));
                     },
                     Compute::f32},
                    {[] {
                       return attention({{2048, 2048}}, shape_of(16, 4, 128));
                     },
                     Compute::bf16},
                    {[] {
                       return attention({{256, 256}}, shape_of(4, 2, 64));
                     },
                     Compute::f32},
                    {[] {
                       return attention(Lengths(4, {512, 512}), shape_of(16, 4, 128));
                     },
                     Compute::f32},
                    {[] {
                       return attention(Lengths(4, {512, 512}), shape_of(16, 4, 128));
                     },
                     Compute::bf16}});

}  // namespace

TEST_CASE("attention: packed sequences, grouped heads, windows") {
  const Lengths packed = {{1, 1}, {5, 5}, {3, 3}};
  for (const int64_t window : {0, 2, 3}) {
    check_op(attention(packed, shape_of(4, 2, 3, window)));
  }
  check_op(attention(packed, shape_of(2, 2, 5)));
  check_op(attention(packed, shape_of(3, 1, 1)));
}

TEST_CASE("attention: decoding, and sequences without rows") {
  check_op(attention({{1, 6}, {2, 4}, {0, 0}, {3, 3}}, shape_of(4, 2, 3)));
  check_op(attention({{2, 7}, {1, 1}}, shape_of(2, 1, 4, 3)));
  check_back_ends(attention({{0, 4}, {1, 2}}, shape_of(2, 1, 4)));  // keys that no query sees
  check_back_ends(attention({}, shape_of(2, 1, 4)));
}

TEST_CASE("attention: more than one tile") {
  const Lengths packed = {{70, 70}, {1, 1}, {129, 129}};
  check_back_ends(attention(packed, shape_of(4, 2, 16)));
  check_back_ends(attention(packed, shape_of(2, 1, 33, 17)));
  check_back_ends(attention({{3, 200}, {65, 150}}, shape_of(2, 2, 16, 70)));
}

TEST_CASE("attention: narrow windows over the bounds of tiles") {
  // Of so few keys none may be missed.
  for (const int64_t window : {2, 3}) {
    INFO("window " << window);
    check_back_ends(attention({{150, 150}, {65, 190}, {1, 65}}, shape_of(2, 1, 8, window)));
  }
}

TEST_CASE("attention: wide heads") {
  for (const int64_t d : {64, 72, 128, 200, 256}) {
    if (kSanitized && (d == 72 || d == 256)) continue;  // code of two of the others
    INFO("heads of " << d);
    AttentionShape shape = shape_of(2, 1, d, d == 128 ? 33 : 0);
    shape.scale = 1 / std::sqrt(static_cast<double>(d));
    check_back_ends(attention({{70, 70}, {9, 40}}, shape));
  }
}

TEST_CASE("attention: a query sees its own sequence, up to itself, within the window") {
  const Lengths lengths = {{4, 4}, {2, 6}};
  for (const int64_t window : {0, 1, 2, 3}) {
    if (kSanitized && window % 2 > 0) continue;
    const OpTest test = attention(lengths, shape_of(2, 1, 3, window));
    for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
      for (int64_t t = 0; t < 6; ++t) {
        const int64_t begin = t < 4 ? 0 : 4;
        const int64_t self = t < 4 ? t : t + 4;  // the last two of six keys
        const int64_t first = window > 0 ? std::max(begin, self - window + 1) : begin;
        for (int64_t j = 0; j < 10; ++j) {
          INFO("window " << window << ", query " << t << ", key " << j);
          CHECK(sees(ops, stream, test, t, j) == (j >= first && j <= self));
        }
      }
    });
  }
}

TEST_CASE("attention: one token attends to itself") {
  const OpTest test = attention({{1, 1}}, shape_of(2, 1, 3));
  for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
    const Tensors result = run_op(ops, stream, test.tensors, test.forward);
    for (int64_t c = 0; c < 6; ++c) {
      CHECK(std::abs(result.at("out").get(0, c) - result.at("v").get(0, c % 3)) < 1e-6);
    }
  });
}

TEST_CASE("attention: large scores") {
  OpTest test = attention({{6, 6}}, shape_of(2, 1, 3));
  for (const char* name : {"q", "k"}) test.tensors.at(name).fill_random(name, 100);
  const Body backward = test.backward;
  test.backward = nullptr;
  test.tolerance = 1e-4;  // scores of some thousand, in f32
  test.products = false;  // rounded, they would be off by more than softmax forgives
  check_back_ends(test);
  // The softmax is saturated and its gradient noise, but finite.
  for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
    Tensors result = run_op(ops, stream, test.tensors, test.forward);
    result = run_op(ops, stream, result, backward);
    for (const char* name : {"dq", "dk", "dv"}) {
      for (int64_t t = 0; t < 6; ++t) CHECK(std::isfinite(result.at(name).get(t, 1)));
    }
  });
}
