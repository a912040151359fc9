// Names of the lines of a plan's memory that are measured by name.
#pragma once

namespace hearth {

inline constexpr const char* kProgram = "program and libraries";
inline constexpr const char* kData = "data";
inline constexpr const char* kLists = "lists of tasks";
inline constexpr const char* kReading = "buffers of reading files";
inline constexpr const char* kStaging = "staging of parameters of devices";
inline constexpr const char* kSaving = "names and digests of a save";
inline constexpr const char* kAllowance = "threads, logs and the check of the result";

}  // namespace hearth
