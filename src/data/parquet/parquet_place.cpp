#include "data/parquet/parquet_place.h"

#include "base/error.h"

namespace hearth {

std::string ParquetPlace::text() const {
  std::string text = file;
  if (group > 0) {
    text += ": row group " + std::to_string(group) + " of " + std::to_string(groups);
  }
  if (!column.empty()) text += (group > 0 ? ", column " : ": column ") + quoted(column);
  return text;
}

void ParquetPlace::refuse(const std::string& what) const {
  throw input_error(text() + ": " + what);
}

void ParquetPlace::damaged(const std::string& expected) const {
  refuse("a Parquet file that is damaged: expected " + expected + "; fetch it again");
}

}  // namespace hearth
