// A variable of the environment for the life of an object.
#pragma once

#include <cstdlib>
#include <string>

namespace hearth::test {

/// An empty value counts as none. Afterwards the variable has the value that it had.
class SetVariable {
 public:
  SetVariable(const char* name, const std::string& value) : name_(name) {
    const char* was = std::getenv(name);
    was_ = was ? was : "";
    setenv(name, value.c_str(), 1);
  }
  ~SetVariable() { was_.empty() ? unsetenv(name_) : setenv(name_, was_.c_str(), 1); }
  SetVariable(const SetVariable&) = delete;
  SetVariable& operator=(const SetVariable&) = delete;

 private:
  const char* name_;
  std::string was_;
};

}  // namespace hearth::test
