// How failed calls become errors: what the sources behind file_ops.h share.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth {

/// "PATH: cannot ACTION: REASON" for a result of FileCalls below zero.
std::string file_failure(const std::string& path, std::string_view action, int64_t negative_errno);

/// The result, or a storage error when it is below zero.
int64_t checked(int64_t result, const std::string& path, std::string_view action);

/// Calls again while a signal interrupts. Not for close, whose descriptor is gone either way.
template <class Call>
auto retried(const Call& call) {
  auto result = call();
  while (result == -EINTR) result = call();
  return result;
}

/// The path for a system call; an input error when it has a NUL byte, which would cut it short, and
/// when no file could have it because it is too long: a message could not name it whole.
const char* system_path(const std::string& path);

std::string parent_of(const std::string& path);     // "." for a plain name
std::string name_of_file(const std::string& path);  // last component

}  // namespace hearth
