// The instruction sets of this machine, for tests that run the program with each.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace hearth::test {

/// RAII: sets an environment variable, and restores its old value.
class WithVariable {
 public:
  WithVariable(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) before_ = before;
    ::setenv(name_.c_str(), value.c_str(), 1);
  }
  ~WithVariable() {
    before_ ? ::setenv(name_.c_str(), before_->c_str(), 1) : ::unsetenv(name_.c_str());
  }
  WithVariable(const WithVariable&) = delete;
  WithVariable& operator=(const WithVariable&) = delete;

 private:
  std::string name_;
  std::optional<std::string> before_;
};

/// The values of HEARTH_ISA that work here. `starts` returns whether the program starts with the
/// current value.
template <typename Starts>
std::vector<std::string> isas_of_machine(const Starts& starts) {
  std::vector<std::string> names;
  for (const char* name : {"avx2", "avx512", "avx512_bf16", "amx"}) {
    const WithVariable isa("HEARTH_ISA", name);
    if (starts()) names.emplace_back(name);
  }
  return names;
}

}  // namespace hearth::test
