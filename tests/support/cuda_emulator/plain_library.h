// Libraries for the emulated GPU in the places of cuBLASLt (plain_library.cpp) and CUTLASS
// (emulated_grouped.cpp): plain loops, so that what calls a library is tested, too; or faulty ones.
// Absent unless a test asks for them.
#pragma once

#include <functional>

namespace hearth::test {

enum class PlainLibrary { absent, right, wrong, failing };
/// Not while ops run; `before` each dense product that it computes. HEARTH_PLAIN_LIBRARY=right in the
/// environment is where it begins.
void set_plain_library(PlainLibrary library, std::function<void()> before = {});
PlainLibrary plain_library();

/// So while it lives, then absent.
struct WithPlainLibrary {
  explicit WithPlainLibrary(PlainLibrary library) { set_plain_library(library); }
  ~WithPlainLibrary() { set_plain_library(PlainLibrary::absent); }
};

}  // namespace hearth::test
