#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <limits>

#include "base/numbers.h"
#include "base/size_text.h"

namespace hearth {
namespace {

TEST_CASE("sizes: four digits of a decimal unit") {
  CHECK(size_text(0) == "0 bytes");
  CHECK(size_text(1) == "1 byte");
  CHECK(size_text(999) == "999 bytes");
  CHECK(size_text(1000) == "1 kB");
  CHECK(size_text(12'345) == "12.35 kB");
  CHECK(size_text(999'949) == "999.9 kB");
  CHECK(size_text(999'950) == "1 MB");
  CHECK(size_text(52'610'000) == "52.61 MB");
  CHECK(size_text(uint64_t{78'164'000'000}) == "78.16 GB");
  CHECK(size_text(uint64_t{64} << 30) == "68.72 GB");
  CHECK(size_text(uint64_t{549'900'000'000}) == "549.9 GB");
  CHECK(size_text(uint64_t{1'500'000'000'000}) == "1.5 TB");
  CHECK(size_text(std::numeric_limits<uint64_t>::max()) == "18446744 TB");
}

TEST_CASE("sizes: the value of an option allows at least what is needed") {
  CHECK(size_option(0) == "0M");
  CHECK(size_option(1) == "1k");
  CHECK(size_option(332'776) == "333k");
  CHECK(size_option(1'000'000) == "1M");
  CHECK(size_option(1'000'001) == "1001k");
  CHECK(size_option(10'000'001) == "11M");
  for (const uint64_t bytes : {uint64_t{999'999}, uint64_t{7} << 30, uint64_t{78'163'999'999}}) {
    CHECK(parse_size(size_option(bytes)).value() >= bytes);
    CHECK(parse_size(size_option(bytes)).value() < bytes + 1'000'000);
  }
}

}  // namespace
}  // namespace hearth
