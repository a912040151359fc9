// Captures the error that a function raises.
#pragma once

#include <string>

#include "base/error.h"

namespace hearth::test {

struct Raised {
  ExitCode code = ExitCode::done;  // done: nothing was raised
  std::string message;
  bool says(const std::string& part) const { return message.find(part) != std::string::npos; }
};

template <class F>
Raised raised_by(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return {e.code(), e.what()};
  }
  return {};
}

}  // namespace hearth::test
