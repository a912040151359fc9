#include "options/suggest.h"

#include <catch2/catch_test_macros.hpp>

using hearth::nearest_name;

TEST_CASE("the nearest name") {
  const std::vector<std::string> names{"lr", "lr-schedule", "seq-len", "steps", "grad-accum"};
  CHECK(nearest_name("seqlen", names) == "seq-len");
  CHECK(nearest_name("setps", names) == "steps");
  CHECK(nearest_name("grad-acum", names) == "grad-accum");
  CHECK(nearest_name("lr-scheduler", names) == "lr-schedule");
  CHECK(nearest_name("quantization-method", names).empty());
  CHECK(nearest_name(std::string(1000, 'a'), names).empty());
  CHECK(nearest_name("x", {}).empty());
}
