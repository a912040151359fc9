// Where a test program finds what is beside it. Each program has a source of its own for these
// (tests/CMakeLists.txt), so that no other object depends on the folders of a build: compiler caches
// share them.
#pragma once

#include <string>

namespace hearth::test {

/// tests/golden.
std::string test_data();
/// tests/golden/..., e.g. test_data("/lora").
inline std::string test_data(const std::string& below) { return test_data() + below; }
/// The program under test. Empty: this test program starts none.
const char* test_binary();
/// The launcher of ranks that the build found. Empty: none.
const char* test_launcher();

}  // namespace hearth::test
