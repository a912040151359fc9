// Errors that end a command: one line for people, one exit code for scripts (docs/errors.md).
//
// Input from outside (files, options, data) is checked, and faults are raised as `Error`. A broken
// invariant of the program itself is a `std::logic_error` raised by HEARTH_CHECK; `main` reports it
// as a bug. Nothing else ends the process.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hearth {

/// Exit codes of the command line.
enum class ExitCode : int {
  done = 0,
  internal = 1,  // a bug: a broken invariant
  usage = 2,
  input = 3,     // bad data, checkpoint or configuration
  storage = 4,   // disk full, no permission, corrupt saved state
  numeric = 5,   // loss or gradient not finite
  device = 6,    // a device or a rank failed
  stopped = 75,  // stopped on a signal, state saved
};

/// An error with a one-line message (where, what is wrong, what to do) and an exit code.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message);
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

Error usage_error(const std::string& message);
Error input_error(const std::string& message);
Error storage_error(const std::string& message);
Error numeric_error(const std::string& message);
Error device_error(const std::string& message);

/// Text from outside in single quotes, made safe for an error line. At most 200 characters (then
/// "..."); control characters and invalid UTF-8 are replaced, so hostile input cannot write to the
/// terminal. (An object: a function would be ambiguous with std::quoted for every std::string.)
struct Quoted {
  std::string operator()(std::string_view text) const;
};
inline constexpr Quoted quoted;

/// Raises std::logic_error with the condition, file and line.
[[noreturn]] void check_failed(const char* condition, const char* file, int line,
                               const std::string& detail);

}  // namespace hearth

/// Checks an invariant of the program (never input), in every build type.
#define HEARTH_CHECK(condition, detail)                                 \
  do {                                                                  \
    if (!(condition)) {                                                 \
      ::hearth::check_failed(#condition, __FILE__, __LINE__, (detail)); \
    }                                                                   \
  } while (false)
