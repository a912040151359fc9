// Turns failed system calls into errors, for the sources behind file_ops.h.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth {

/// "PATH: cannot ACTION: REASON" for a negative result of FileCalls.
std::string file_failure(const std::string& path, std::string_view action, int64_t negative_errno);

/// Returns the result; raises a storage error if it is negative.
int64_t checked(int64_t result, const std::string& path, std::string_view action);

/// Repeats a call that a signal interrupted. Not for close, which releases the descriptor even
/// then.
template <class Call>
auto retried(const Call& call) {
  auto result = call();
  while (result == -EINTR) result = call();
  return result;
}

/// The path for a system call. Input error if it has a NUL byte, which would cut it short, or if it
/// is too long for any file.
const char* system_path(const std::string& path);

std::string parent_of(const std::string& path);     // "." if the path has no folder
std::string name_of_file(const std::string& path);  // last component

}  // namespace hearth
