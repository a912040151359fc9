// Names of the lines of a plan's memory that are measured by name.
#pragma once

#include <string>

namespace hearth {

inline constexpr const char* kProgram = "program and libraries";
inline constexpr const char* kData = "data";
inline constexpr const char* kLists = "schedules";
inline constexpr const char* kReading = "buffers of reading files";
inline constexpr const char* kStaging = "staging of parameters of devices";
/// Of the host, for a device whose memory is the host's.
inline std::string memory_line_of(const std::string& place) { return "memory of " + place; }
inline constexpr const char* kSaving = "names and digests of a save";
inline constexpr const char* kAllowance = "threads, logs and the check of the result";

}  // namespace hearth
