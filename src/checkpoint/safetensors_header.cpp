#include "checkpoint/safetensors_header.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_scanner.h"

namespace hearth {
namespace {

void check_duplicates(const SafetensorsHeader& header, const std::string& source) {
  std::vector<std::string_view> names;
  names.reserve(std::max(header.entries.size(), header.metadata.size()));
  const auto check = [&](const char* what) {
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) {
      throw input_error(source + ": the safetensors header has the " + what + " " + quoted(*twice) +
                        " twice");
    }
    names.clear();
  };
  for (const auto& entry : header.entries) names.push_back(entry.name);
  check("tensor");
  for (const auto& [key, value] : header.metadata) names.push_back(key);
  check("metadata key");
}

/// Bytes of an entry by type and shape.
uint64_t checked_bytes(const SafetensorsEntry& entry, const std::string& source) {
  const std::optional<uint64_t> bytes = safetensors_bytes(entry);
  if (!bytes) {
    throw input_error(source + ": tensor " + quoted(entry.name) + ": the shape " +
                      shape_text(entry.shape) + " of type " + entry.dtype +
                      " is too large, or not a whole number of bytes");
  }
  return *bytes;
}

/// Every byte of the data belongs to exactly one tensor.
void check_layout(const SafetensorsHeader& header, uint64_t data_bytes, const std::string& source) {
  uint64_t at = 0;
  for (const auto& entry : header.entries) {
    const auto where = [&] { return source + ": tensor " + quoted(entry.name); };
    if (entry.begin > entry.end || entry.end > data_bytes) {
      throw input_error(where() + ": data_offsets [" + std::to_string(entry.begin) + ", " +
                        std::to_string(entry.end) + ") are reversed or past the end of the file, " +
                        "which has " + std::to_string(data_bytes) + " bytes of data");
    }
    const uint64_t bytes = checked_bytes(entry, source);
    if (entry.end - entry.begin != bytes) {
      throw input_error(where() + ": data_offsets span " + std::to_string(entry.end - entry.begin) +
                        " bytes, but shape " + shape_text(entry.shape) + " of type " + entry.dtype +
                        " takes " + std::to_string(bytes));
    }
    if (entry.begin != at) {
      throw input_error(where() + ": its data begins at " + std::to_string(entry.begin) +
                        (entry.begin < at ? ", inside another tensor's (which ends at "
                                          : ", after a gap (the data before it ends at ") +
                        std::to_string(at) + ")");
    }
    at = entry.end;
  }
  if (at != data_bytes) {
    throw input_error(source + ": " + std::to_string(data_bytes - at) +
                      " bytes follow the data of the last tensor");
  }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text, uint64_t file_size,
                                           const std::string& source) {
  if (text.size() > kMaxSafetensorsHeader || file_size < 8 || text.size() > file_size - 8) {
    throw input_error(source + ": the safetensors header is longer than the file or 100 MB");
  }
  if (find_invalid_utf8(text) != std::string_view::npos) {
    throw input_error(source + ": the safetensors header is not valid UTF-8");
  }
  SafetensorsHeader header = scan_safetensors_header(text, source);
  header.data_begin = 8 + text.size();
  check_duplicates(header, source);
  // Tensors of no bytes come before the one that begins where they lie.
  std::stable_sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  check_layout(header, file_size - header.data_begin, source);
  return header;
}

}  // namespace hearth
