#include <catch2/catch_test_macros.hpp>

#include "base/version.h"

TEST_CASE("the build knows its version, type and compiler") {
  const hearth::BuildInfo& info = hearth::build_info();
  CHECK_FALSE(info.version.empty());
  CHECK_FALSE(info.revision.empty());
  CHECK_FALSE(info.build_type.empty());
  CHECK(info.compiler.find(' ') != std::string::npos);
}
