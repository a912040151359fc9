// The header of a safetensors file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

/// An entry of a header. `dtype` is the format's name ("BF16"); `begin` and `end` count from the
/// start of the data.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // by offset
  std::vector<std::pair<std::string, std::string>> metadata;
  uint64_t data_begin = 0;  // offset in the file
};

/// The format's limit on the size of a header, in bytes.
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

/// Parses and checks a header: `text` is the JSON, `file_size` the size of the whole file in bytes.
/// Input error, naming `source` and the tensor, for text outside the format's grammar, duplicate
/// keys, unknown types, more than 64 dimensions, shapes whose bytes overflow or differ from the
/// offsets, and data with holes, overlaps or bytes of no tensor. Takes memory in proportion to the
/// text. Pure: the fuzz target calls it.
SafetensorsHeader parse_safetensors_header(std::string_view text, uint64_t file_size,
                                           const std::string& source);

}  // namespace hearth
