// The header of a safetensors file (research: format specification 2.1 and its checks).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

/// An entry of a header. `dtype` is the format's name ("BF16"); offsets are from the start of the
/// data.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in order of offset
  std::vector<std::pair<std::string, std::string>> metadata;
  uint64_t data_begin = 0;  // in the file
};

/// The format's limit of a header, in bytes.
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

/// Parses and checks a header: the whole file is `file_size` bytes, `text` the JSON. Raises an
/// input error naming `source` and the tensor. Refused: what is not exactly the format's grammar,
/// keys that come twice, types the format does not know, shapes whose bytes overflow or are not
/// those of the offsets, data with holes, overlaps or bytes of no tensor, more than 64 dimensions.
/// Takes memory in proportion to the text. Pure: the fuzz target calls it.
SafetensorsHeader parse_safetensors_header(std::string_view text, uint64_t file_size,
                                           const std::string& source);

}  // namespace hearth
