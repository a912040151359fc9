// Where in a Parquet file a fault is, for its message.
#pragma once

#include <cstdint>
#include <string>

namespace hearth {

struct ParquetPlace {
  std::string file;         // as messages name it
  int64_t group = 0;        // of rows, from 1; 0: the file as a whole
  int64_t groups = 0;       // of the file
  std::string column = {};  // its path, with dots; empty: all

  /// FILE: row group 2 of 7, column messages.list.element.role
  std::string text() const;
  /// Input error: the place and what is wrong there.
  [[noreturn]] void refuse(const std::string& what) const;
  /// Input error for damage: `expected` is what a whole file has there.
  [[noreturn]] void damaged(const std::string& expected) const;
};

}  // namespace hearth
