// A column of a row group: its values with their levels, page by page.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/input_file.h"
#include "data/parquet/page_values.h"
#include "data/parquet/parquet_footer.h"
#include "data/parquet/parquet_schema.h"
#include "data/parquet/run_decoders.h"
#include "data/rows/decoders.h"
#include "data/rows/line_reader.h"

namespace hearth {

struct ParquetLimits {
  /// Bytes of unpacked pages and dictionaries that all columns may hold at one time, and of a packed
  /// page.
  uint64_t held = uint64_t{1} << 30;
  /// Bytes of a row, about as its text has them.
  uint64_t row = kMaxLine;
  int zstd_window_log = kZstdWindowLog;
};

/// What the columns of a file share.
struct ParquetPages {
  const InputFile& file;
  uint64_t end = 0;  // offset in the file that no page reaches
  ParquetLimits limits;
  uint64_t held = 0;        // bytes now
  uint64_t bytes_read = 0;  // of the file
};

/// An entry is a value, a null or an empty list. Holds one page and one dictionary. Errors are input
/// errors that name row group and column.
class ParquetColumn {
 public:
  /// `pages` and `leaf` must outlive the column.
  ParquetColumn(ParquetPages& pages, const ParquetLeaf& leaf, const ParquetChunk& chunk,
                ParquetPlace place);
  ~ParquetColumn();
  ParquetColumn(const ParquetColumn&) = delete;
  ParquetColumn& operator=(const ParquetColumn&) = delete;

  bool at_end();
  // Levels of the entry that `take` takes; input error at the end.
  int repetition();
  int definition();
  /// Takes an entry; returns whether it has a value.
  bool take(ParquetValue& value);

  const ParquetLeaf& leaf() const { return leaf_; }
  const ParquetPlace& place() const { return place_; }

 private:
  /// Bytes that count as held while they are in memory.
  struct Held {
    std::string bytes;
    uint64_t counted = 0;
  };

  bool peek();  // false at the end
  void peek_entry();
  void read_page();
  ParquetPage read_header();
  std::string read_packed(const ParquetPage& page);
  void hold(Held& held, uint64_t bytes);
  void read_dictionary_page(const ParquetPage& page, std::string packed);
  void read_data_page(const ParquetPage& page, std::string packed);
  void read_data_page2(const ParquetPage& page, std::string packed);
  std::string_view take_levels(std::string_view& bytes, int64_t encoding) const;

  ParquetPages& pages_;
  const ParquetLeaf& leaf_;
  ParquetChunk chunk_;
  ParquetPlace place_;
  uint64_t at_ = 0, end_ = 0;  // of the pages that follow, in the file
  int64_t left_ = 0;           // entries of the column that no page read so far has
  int64_t in_page_ = 0;        // entries left in the page
  Held page_, dictionary_bytes_;
  std::vector<ParquetValue> dictionary_;
  bool has_dictionary_ = false;
  RunDecoder repetitions_, definitions_;
  std::unique_ptr<ValueDecoder> values_;
  bool peeked_ = false;
  int repetition_ = 0, definition_ = 0;  // of the peeked entry
};

}  // namespace hearth
