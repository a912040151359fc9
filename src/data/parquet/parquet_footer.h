// The footer of a Parquet file, and the headers of its pages, as they are stored.
// Source: parquet.thrift of apache/parquet-format 2.11; numbers are those of that file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/input_file.h"
#include "data/parquet/parquet_place.h"

namespace hearth {

enum class ParquetType : int8_t { boolean, int32, int64, int96, float32, float64, bytes, fixed };

/// Names of an encoding and of a compression for messages; a number where it has none.
std::string parquet_encoding_name(int64_t encoding);
std::string parquet_codec_name(int64_t codec);

/// Stored encodings.
struct ParquetEncoding {
  static constexpr int64_t plain = 0, plain_dictionary = 2, runs = 3, delta = 5, delta_length = 6,
                           delta_bytes = 7, dictionary = 8, split = 9;
};

/// A node of the schema, which is a list in depth-first order.
struct ParquetElement {
  std::string name;
  int64_t type = -1;       // ParquetType; -1: a group
  int64_t repetition = 0;  // 0: required, 1: optional, 2: repeated
  int64_t children = 0;
  int64_t converted = -1;  // ConvertedType; -1: none
  int64_t logical = -1;    // field of LogicalType; -1: none
  bool is_signed = true;   // of an integer
};

/// A column of a row group.
struct ParquetChunk {
  int64_t type = -1;
  int64_t codec = 0;
  int64_t values = 0;                          // nulls and empty lists included
  int64_t bytes = 0;                           // of its pages in the file, with headers
  int64_t data_page = 0, dictionary_page = 0;  // offsets in the file; 0: none
  bool elsewhere = false;                      // in another file
  bool encrypted = false;
};

struct ParquetGroup {
  int64_t rows = 0;
  std::vector<ParquetChunk> chunks;
};

/// Reads a group of rows at a time from the footer's bytes, which stay in memory (at most 64 MiB).
class ParquetFooter {
 public:
  /// Input error for a file that is cut off, encrypted, or whose footer is damaged.
  ParquetFooter(const InputFile& file, const std::string& name);

  const std::vector<ParquetElement>& elements() const { return elements_; }
  int64_t rows() const { return rows_; }
  int64_t groups() const { return groups_; }
  uint64_t begin() const { return begin_; }  // offset in the file; all pages end before it

  /// The next group, whose columns must be `columns`; nullopt after the last.
  std::optional<ParquetGroup> next_group(size_t columns);

 private:
  void read(ParquetPlace& place);

  std::string name_;
  std::string bytes_;
  uint64_t begin_ = 0;
  std::vector<ParquetElement> elements_;
  int64_t rows_ = 0, groups_ = 0;
  int64_t group_ = 0;  // read so far
  size_t at_ = 0;      // of the next group in bytes_
};

struct ParquetPage {
  enum Kind : int64_t { kData = 0, kIndex = 1, kDictionary = 2, kData2 = 3 };
  int64_t kind = -1;
  int64_t size = -1;            // unpacked
  int64_t packed_size = -1;     // in the file
  std::optional<uint32_t> crc;  // CRC-32 of the bytes in the file
  int64_t values = -1;
  int64_t encoding = -1;
  int64_t definition_encoding = 3, repetition_encoding = 3;  // of kData
  int64_t definition_bytes = 0, repetition_bytes = 0;        // of kData2
  bool packed = true;                                        // of kData2
  size_t header_size = 0;
};

/// The header at the start of `bytes`. ThriftError, and input error for numbers that no page has.
ParquetPage read_parquet_page(std::string_view bytes, const ParquetPlace& place);

}  // namespace hearth
