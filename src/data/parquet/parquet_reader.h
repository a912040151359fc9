// Reads Parquet files as rows, each a JSON object of its columns.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/hash.h"
#include "data/parquet/parquet_column.h"
#include "data/rows/raw_rows.h"

namespace hearth {

/// Whether a file begins as Parquet files do. Input error as InputFile has it.
bool is_parquet_file(const std::string& path);

/// Rows are those that pyarrow's Table.to_pylist gives: structs are objects, lists arrays, maps of
/// texts objects, and every member is there, null if it has no value. A number that is not finite is
/// null, and so are bytes that are not UTF-8, unless their column is one of texts: then the row has
/// a `problem`. Columns that are left out: read_parquet_schema.
///
/// Reads data pages of both versions; their encodings: decode_values; their compression:
/// check_parquet_codec. Holds the footer (at most 64 MiB), and a page and a dictionary per column
/// (ParquetLimits::held). A row must be smaller than kMaxLine.
class ParquetReader {
 public:
  /// Input error for a file whose footer is damaged, or of which no column is read.
  explicit ParquetReader(const std::string& path, const ParquetLimits& limits = {});
  ~ParquetReader();

  /// The next row. `line` is its number in the file, from 1. False at the end. Input error naming
  /// row group and column for damage and for what is not read.
  bool next(RawRow& row);

  const std::string& name() const;
  uint64_t bytes_read() const;
  /// Of the whole file.
  Digest digest();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth
