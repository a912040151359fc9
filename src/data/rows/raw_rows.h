// Data files to raw rows: where a row begins and ends, and where it stands. Nothing is parsed here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace hearth {

/// One row as it stands in a file.
struct RawRow {
  std::string file;       // for people: shown_name
  int64_t line = 0;       // from 1, of its first character in the decompressed text
  bool document = false;  // a plain text, not JSON
  std::string text;       // neither checked nor parsed
  std::string where() const { return file + ":" + std::to_string(line); }
};

/// The rows of files, one file after the other. A file is JSON Lines (blank lines are passed over),
/// or, named .json, an array of rows where its first character is '['; a .txt file is one document.
/// Each may be packed as gzip or zstd and then be named .gz or .zst behind that. `-` is standard
/// input: JSON Lines, packed or not. A byte order mark at the start is passed over.
///
/// Holds one row and one piece of a file in memory; no row has 48 MiB or more, nor has what is blank
/// between rows (a million lines at most). For one thread.
class RawRowSource {
 public:
  explicit RawRowSource(std::vector<std::string> files);
  ~RawRowSource();
  RawRowSource(RawRowSource&&) noexcept;
  RawRowSource& operator=(RawRowSource&&) noexcept;

  /// False at the end. Input error where a file is missing or of another kind, and where one cannot
  /// be cut into rows (a line that is too long, an array that is none, a packed file that is
  /// damaged): no row is passed over for it.
  bool next(RawRow& row);

  /// Bytes taken from files so far, packed as they are: for a bar.
  uint64_t bytes_read() const;

  /// Path and XXH3 of the bytes of the files read to their end so far.
  const std::vector<std::pair<std::string, Digest>>& digests() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Opens every file, so that a missing one, or one of another kind, is known before the first is read:
/// an input error. A usage error when standard input is named twice.
void check_data_files(const std::vector<std::string>& files);

}  // namespace hearth
