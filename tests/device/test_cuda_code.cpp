// Which GPUs a build has code for.
#include <catch2/catch_test_macros.hpp>

#include "device/cuda_code.h"

namespace hearth::test {
namespace {

bool runs(const char* architectures, int major, int minor) {
  return missing_cuda_code(architectures, major, minor).empty();
}

TEST_CASE("cuda code: machine code runs on its major version, PTX on all later ones") {
  constexpr const char* kOurs = "80-real,89-real,90a-real,120-real,90-virtual";
  for (const auto& [major, minor] :
       {std::pair(8, 0), {8, 6}, {8, 7}, {8, 9}, {9, 0}, {10, 0}, {12, 0}, {12, 1}}) {
    INFO(major << '.' << minor);
    CHECK(runs(kOurs, major, minor));
  }
  for (const auto& [major, minor] : {std::pair(5, 2), {7, 0}, {7, 5}}) {
    INFO(major << '.' << minor);
    CHECK_FALSE(runs(kOurs, major, minor));
  }
  CHECK_FALSE(runs("89-real", 8, 6));
  CHECK_FALSE(runs("80-real", 9, 0));
  CHECK(runs("80", 9, 0));
  CHECK(runs("75-virtual", 9, 0));
  CHECK_FALSE(runs("90a-real", 10, 0));
  CHECK_FALSE(runs("90a", 10, 0));  // PTX of one version alone
  CHECK(runs("90a", 9, 0));
}

TEST_CASE("cuda code: what is missing is said, what is not known is not") {
  CHECK(missing_cuda_code("80-real", 7, 5) ==
        "its compute capability is 7.5, but this build has code for 80-real; "
        "build with -DHEARTH_CUDA_ARCHITECTURES=75");
  CHECK(runs("", 3, 0));
  CHECK(runs("native", 3, 0));
}

}  // namespace
}  // namespace hearth::test
