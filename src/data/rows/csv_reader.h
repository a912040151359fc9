// Reads tables of comma-separated values (RFC 4180) as rows: one JSON object of strings per record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/rows/byte_stream.h"
#include "data/rows/raw_rows.h"

namespace hearth {

/// The first record names the columns. A field may be quoted, and then hold delimiters, line breaks
/// and doubled quotes. An empty field is null, a quoted empty one an empty string. Blank lines are
/// skipped. Holds one record, smaller than kMaxLine, and one piece of the text in memory.
class CsvReader {
 public:
  /// `head`: text already read from the stream. `delimiter`: 0 takes the first of comma, semicolon
  /// and tab that the first record has. Input error for names of columns that are empty or equal.
  CsvReader(ByteStream& bytes, std::string head, char delimiter);

  /// The next record, with `line`, `text` and, if it cannot be a row, `problem`: another number of
  /// fields, text after a quoted field, invalid UTF-8. False at the end. Input error for a record
  /// that is too long, and for a quote that is never closed.
  bool next(RawRow& row);

 private:
  using Field = std::optional<std::string>;

  int peek();  // the next byte; -1 at the end
  void take() {
    if (text_[at_] == '\n') ++line_;
    ++at_;
    ++size_;
  }
  /// Reads a record that is not blank.
  bool read_record(std::vector<Field>& fields, std::string& problem);
  Field read_field(std::string& problem);
  std::string read_quoted();

  ByteStream& bytes_;
  std::string text_;
  size_t at_ = 0;
  size_t size_ = 0;  // of the record
  int64_t line_ = 1;
  int64_t record_line_ = 1;
  char delimiter_;
  std::vector<std::string> names_;
};

}  // namespace hearth
