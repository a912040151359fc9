// What measured tasks read.
#include "runtime/task_inputs.h"

#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "runtime/steps.h"
#include "support/test_stream.h"
#include "support/tiny_config.h"

namespace hearth::test {
namespace {

Port ints_of(Value value, int64_t rows_per_token, int64_t cols, int64_t extra_rows = 0) {
  return {.value = value,
          .dtype = DType::i32,
          .rows_per_token = rows_per_token,
          .extra_rows = extra_rows,
          .cols = cols};
}

/// An input as a matrix; the op under test may write to it.
struct Ints {
  std::vector<std::byte> bytes;
  View view;

  Ints(const Port& port, const ModelSpec& spec, int64_t tokens)
      : bytes(task_input(port, spec, tokens, 4)),
        view(bytes.data(), DType::i32, port.rows(tokens), port.cols) {}
};

}  // namespace

// Rows that two tiles write, as with the token of a row in place of its choice, would be a race, and
// rows that lie closer together than those of a run would be measured too fast.
TEST_CASE("task inputs: the routing is what route makes of the choices") {
  ModelSpec spec;
  spec.experts = 5;
  spec.experts_per_token = 3;
  const int64_t tokens = 7, k = spec.experts_per_token;
  const Ints choice(ints_of(Value::choice, 1, k), spec, tokens);
  const Ints offsets(ints_of(Value::route_offsets, 0, 1, spec.experts + 1), spec, tokens);
  const Ints source(ints_of(Value::route_source, k, 1), spec, tokens);
  const Ints row_of(ints_of(Value::route_row_of, 1, k), spec, tokens);

  std::vector<int32_t> made(static_cast<size_t>(spec.experts + 1 + 2 * tokens * k), -1);
  int32_t* const at = made.data();
  const View made_offsets(at, DType::i32, 1, spec.experts + 1);
  const View made_source(at + spec.experts + 1, DType::i32, 1, tokens * k);
  const View made_row_of(at + spec.experts + 1 + tokens * k, DType::i32, tokens, k);
  TestStream stream;
  cpu().route(stream, choice.view, {}, made_offsets, made_source, made_row_of);

  CHECK(std::memcmp(made_offsets.raw(), offsets.bytes.data(), offsets.bytes.size()) == 0);
  CHECK(std::memcmp(made_source.raw(), source.bytes.data(), source.bytes.size()) == 0);
  CHECK(std::memcmp(made_row_of.raw(), row_of.bytes.data(), row_of.bytes.size()) == 0);
}

}  // namespace hearth::test
