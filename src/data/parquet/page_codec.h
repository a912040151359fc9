// Unpacks the pages of a Parquet file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "data/parquet/parquet_place.h"
#include "data/rows/decoders.h"

namespace hearth {

/// Input error naming the compression if it is not UNCOMPRESSED, SNAPPY, GZIP or ZSTD.
void check_parquet_codec(int64_t codec, const ParquetPlace& place);

/// The `size` bytes of a page that is packed by `codec`. Input error if it is damaged, or holds
/// another number of bytes. Memory grows with what was unpacked, not with `size`.
std::string unpack_page(std::string packed, int64_t codec, size_t size, const ParquetPlace& place,
                        int zstd_window_log = kZstdWindowLog);

}  // namespace hearth
