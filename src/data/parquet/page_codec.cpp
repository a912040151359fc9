#include "data/parquet/page_codec.h"

#include <algorithm>
#include <span>

#include "base/error_format.h"
#include "data/parquet/parquet_footer.h"
#include "data/parquet/snappy.h"

namespace hearth {
namespace {

constexpr int64_t kUncompressed = 0, kSnappy = 1, kGzip = 2, kZstd = 6;
constexpr size_t kFirstRoom = size_t{1} << 20;

std::string unpack_stream(std::string_view packed, size_t size, const ParquetPlace& place,
                          Unpacker& unpacker) {
  std::string text;
  size_t done = 0;
  while (true) {
    // One byte more than wanted shows a page that holds more.
    if (done == text.size()) text.resize(std::min(size + 1, std::max(kFirstRoom, 2 * done)));
    std::span<char> room(text.data() + done, text.size() - done);
    const size_t before = packed.size(), free = room.size();
    unpacker.decode(packed, room);
    done += free - room.size();
    if (done > size) break;
    if (packed.empty() && free == room.size()) break;
    if (packed.size() == before && free == room.size()) break;
  }
  if (done != size || !packed.empty() || !unpacker.at_end()) {
    place.damaged(fmt::format("a page of {} bytes when unpacked", size));
  }
  text.resize(size);
  return text;
}

}  // namespace

void check_parquet_codec(int64_t codec, const ParquetPlace& place) {
  for (const int64_t known : {kUncompressed, kSnappy, kGzip, kZstd}) {
    if (codec == known) return;
  }
  place.refuse("pages compressed by " + parquet_codec_name(codec) +
               ", which is not read; write the file with snappy, gzip, zstd or none");
}

std::string unpack_page(std::string packed, int64_t codec, size_t size, const ParquetPlace& place,
                        int zstd_window_log) {
  check_parquet_codec(codec, place);
  if (codec == kUncompressed) {
    if (packed.size() != size) {
      place.damaged(fmt::format("a page of {} bytes, and found {}", size, packed.size()));
    }
    return packed;
  }
  if (size == 0 && packed.empty()) return packed;
  if (codec == kSnappy) {
    auto text = unpack_snappy(packed, size);
    if (!text) place.damaged(fmt::format("a page of {} bytes packed by snappy", size));
    return *std::move(text);
  }
  const bool gzip = packed.starts_with("\x1f\x8b");
  const auto unpacker = make_unpacker(packed, place.text(), zstd_window_log);
  if (!unpacker || gzip != (codec == kGzip) || packed.starts_with("\xfd\x37")) {
    place.damaged("a page packed by " + std::string(codec == kGzip ? "gzip" : "zstd"));
  }
  return unpack_stream(packed, size, place, *unpacker);
}

}  // namespace hearth
