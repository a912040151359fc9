#include <catch2/catch_test_macros.hpp>

#include "base/version.h"

TEST_CASE("the build knows its version, type and compiler") {
  const hearth::BuildInfo& info = hearth::build_info();
  CHECK_FALSE(info.version.empty());
  CHECK_FALSE(info.revision.empty());
  CHECK_FALSE(info.build_type.empty());
  CHECK(info.compiler.find(' ') != std::string::npos);
  // A version, or the reason why not.
  for (const std::string& part : {info.cuda, info.cutlass, info.cudnn}) {
    INFO(part);
    const bool none = part.starts_with("none: ") && part.size() > 6;
    CHECK((none || part.find_first_of("123456789") != std::string::npos));
  }
  if (!info.cuda.starts_with("none")) CHECK(info.cuda.find(" for sm_") != std::string::npos);
}
