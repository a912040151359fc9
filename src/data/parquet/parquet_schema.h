// The columns of a Parquet file as a tree of the JSON values that its rows become.
// Source: "Logical types" of apache/parquet-format, with its rules for lists of older writers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/parquet/parquet_footer.h"

namespace hearth {

/// A column whose values are stored.
struct ParquetLeaf {
  std::string path;  // with dots
  ParquetType type = ParquetType::bytes;
  bool is_signed = true;
  bool is_text = false;                // must be UTF-8; other bytes that are not UTF-8 become null
  int repetition = 0, definition = 0;  // largest levels
  size_t chunk = 0;                    // its number in each row group
};

struct ParquetNode {
  enum class Kind : uint8_t { leaf, object, list, map };
  Kind kind = Kind::leaf;
  std::string name;
  bool optional = false;
  int definition = 0;                 // level at which the value is not null, if it is optional
  int element_definition = 0;         // level at which a list has an element
  int repetition = 0;                 // level of a further element
  size_t first = 0, end = 0;          // its leaves
  std::vector<ParquetNode> children;  // members; of a list its element; of a map key and value
};

struct ParquetSchema {
  ParquetNode row;  // an object
  std::vector<ParquetLeaf> leaves;
  size_t chunks = 0;  // columns per row group, those that are not read included
};

/// Leaves out columns of types that no field of a row has: dates, times, decimals, INT96, bytes of a
/// fixed size. Input error for a schema that is damaged, nested more than 48 deep, has two members
/// of one name, or no column that is read.
ParquetSchema read_parquet_schema(const std::vector<ParquetElement>& elements,
                                  const ParquetPlace& place);

}  // namespace hearth
