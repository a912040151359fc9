// Integers as Parquet packs them: runs of equal or bit-packed values, and differences.
// Source: "Encodings" of apache/parquet-format.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace hearth {

/// The RLE / bit-packed hybrid: levels, indices of a dictionary, booleans. Allocates nothing.
class RunDecoder {
 public:
  RunDecoder() = default;
  /// `width`: bits per value, at most 32. With 0, every value is 0, and `bytes` may be empty.
  RunDecoder(std::string_view bytes, int width) : bytes_(bytes), width_(width) {}
  /// False if there is no further value.
  bool next(uint32_t& value);

 private:
  bool begin_run();

  std::string_view bytes_;
  int width_ = 0;
  uint64_t left_ = 0;  // of the run
  bool packed_ = false;
  uint32_t value_ = 0;       // of a run of equal values
  std::string_view values_;  // of a bit-packed run
  uint64_t bit_ = 0;         // of the next value in values_
};

/// DELTA_BINARY_PACKED. Allocates nothing.
class DeltaDecoder {
 public:
  DeltaDecoder() = default;
  explicit DeltaDecoder(std::string_view bytes);
  /// False if there is no further value, or the bytes are damaged.
  bool next(int64_t& value);
  /// What follows the last value; false if the bytes are damaged. Takes none of the values.
  bool find_end(std::string_view& rest) const;

 private:
  bool begin_block();

  std::string_view bytes_;  // behind what was read
  bool damaged_ = true;
  uint64_t per_block_ = 0, blocks_ = 0;  // values per small block, small blocks per large one
  uint64_t left_ = 0;                    // values that are not given yet
  bool first_ = true;
  uint64_t value_ = 0;       // the last; arithmetic wraps around
  uint64_t least_ = 0;       // difference of the large block
  std::string_view widths_;  // of the small blocks that follow
  std::string_view values_;  // of the small block
  uint64_t in_block_ = 0;    // values left in it
  int width_ = 0;
  uint64_t bit_ = 0;
};

}  // namespace hearth
