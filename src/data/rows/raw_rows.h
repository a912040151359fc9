// Splits data files into raw rows and records their line numbers. Parses nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace hearth {

/// One row of a file.
struct RawRow {
  std::string file;       // name for messages (shown_name)
  int64_t line = 0;       // from 1, of its first character in the decompressed text; of a Parquet
                          // file, the number of the row
  bool document = false;  // plain text, not JSON
  std::string text;       // neither checked nor parsed
  std::string problem;    // why it cannot be a row; empty: nothing is known
  std::string where() const { return file + ":" + std::to_string(line); }
};

/// Reads the rows of files, one file after the other. A .txt file is one document. A .json file
/// that starts with '[' is an array of rows. A .csv or .tsv file is a table (CsvReader). A file that
/// begins as Parquet files do is one (ParquetReader), whatever its name. Every other file, and `-` (standard input), is JSON Lines; blank lines are skipped. Each may be compressed by
/// gzip, zstd or xz; .gz, .zst or .xz then follows its extension. A byte order mark at the start is
/// skipped.
///
/// Holds one row and one piece of a file in memory, or what ParquetReader holds. A row must be smaller than kMaxLine, and so
/// must the blank lines between two rows, of which there may be a million. Not thread-safe.
class RawRowSource {
 public:
  /// `most_rows`: of each file, the first ones; 0: all.
  explicit RawRowSource(std::vector<std::string> files, int64_t most_rows = 0);
  ~RawRowSource();
  RawRowSource(RawRowSource&&) noexcept;
  RawRowSource& operator=(RawRowSource&&) noexcept;

  /// False at the end. Input error if a file is missing, of another kind, or cannot be split into
  /// rows (line too long, malformed array, damaged compression). --skip-bad-rows does not cover
  /// these errors.
  bool next(RawRow& row);

  /// Bytes read from files so far, before decompression; for a progress bar.
  uint64_t bytes_read() const;

  /// Path and XXH3 digest of each file whose rows were all given.
  const std::vector<std::pair<std::string, Digest>>& digests() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Opens every file, so an error in any file appears before the first is read. Input error if a
/// file is missing or of another kind. Usage error if standard input is named twice.
void check_data_files(const std::vector<std::string>& files);

}  // namespace hearth
