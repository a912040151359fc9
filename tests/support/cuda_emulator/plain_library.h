// Replaces cuBLASLt (plain_library.cpp) and CUTLASS (emulated_grouped.cpp) on the emulated GPU by
// plain loops or faulty code, to test the callers of libraries. Absent by default.
#pragma once

#include <functional>

namespace hearth::test {

enum class PlainLibrary { absent, right, wrong, failing };
/// Do not call while ops run. The library calls `before` before each dense product. The environment
/// variable HEARTH_PLAIN_LIBRARY=right sets the initial state.
void set_plain_library(PlainLibrary library, std::function<void()> before = {});
PlainLibrary plain_library();

/// RAII: sets the library, and makes it absent when destroyed.
struct WithPlainLibrary {
  explicit WithPlainLibrary(PlainLibrary library) { set_plain_library(library); }
  ~WithPlainLibrary() { set_plain_library(PlainLibrary::absent); }
};

}  // namespace hearth::test
