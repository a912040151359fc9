// The values of a page, one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "data/parquet/parquet_footer.h"

namespace hearth {

/// A value as it is stored: its bits, zero-extended, or its bytes.
struct ParquetValue {
  uint64_t bits = 0;
  std::string_view bytes;  // of the page, of the dictionary, or of the decoder until its next call
};

class ValueDecoder {
 public:
  virtual ~ValueDecoder() = default;
  /// False if there is no further value, or the page is damaged.
  virtual bool next(ParquetValue& value) = 0;
};

/// The values of a dictionary page, which are PLAIN. The page must outlive them. Input error if it
/// has fewer than `count`.
std::vector<ParquetValue> read_dictionary(std::string_view page, ParquetType type, size_t count,
                                          const ParquetPlace& place);

/// Decodes `bytes`, which, like the dictionary, must outlive the decoder. `dictionary` is nullptr
/// where the column has none. Input error naming an encoding that is not read for this type.
std::unique_ptr<ValueDecoder> decode_values(std::string_view bytes, ParquetType type,
                                            int64_t encoding,
                                            const std::vector<ParquetValue>* dictionary,
                                            const ParquetPlace& place);

}  // namespace hearth
