#include "data/parquet/parquet_column.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error_format.h"
#include "data/parquet/page_codec.h"
#include "data/parquet/thrift_reader.h"

namespace hearth {
namespace {

constexpr uint64_t kFirstHeader = 256, kMostHeader = uint64_t{16} << 20;
/// Some old writers count the header of the dictionary page for nothing.
constexpr uint64_t kUncountedHeader = 100;

int bits_for(int most) { return static_cast<int>(std::bit_width(static_cast<unsigned>(most))); }

}  // namespace

ParquetColumn::ParquetColumn(ParquetPages& pages, const ParquetLeaf& leaf,
                             const ParquetChunk& chunk, ParquetPlace place)
    : pages_(pages), leaf_(leaf), chunk_(chunk), place_(std::move(place)), left_(chunk.values) {
  place_.column = leaf.path;
  if (chunk.encrypted) place_.refuse("an encrypted column, which is not read");
  if (chunk.elsewhere) place_.refuse("a column in another file, which is not read");
  if (chunk.type != static_cast<int64_t>(leaf.type)) {
    place_.damaged(fmt::format("the type {} of the schema, and found {}",
                               static_cast<int>(leaf.type), chunk.type));
  }
  check_parquet_codec(chunk.codec, place_);
  int64_t begin = chunk.data_page;
  if (chunk.dictionary_page > 0) begin = std::min(begin, chunk.dictionary_page);
  if (chunk.values < 0 || begin < 4 || chunk.bytes < 0 ||
      static_cast<uint64_t>(begin) > pages_.end ||
      static_cast<uint64_t>(chunk.bytes) > pages_.end - static_cast<uint64_t>(begin)) {
    place_.damaged("pages within the file");
  }
  at_ = static_cast<uint64_t>(begin);
  end_ = std::min(pages_.end, at_ + static_cast<uint64_t>(chunk.bytes) + kUncountedHeader);
}

ParquetColumn::~ParquetColumn() { pages_.held -= page_.counted + dictionary_bytes_.counted; }

void ParquetColumn::hold(Held& held, uint64_t bytes) {
  pages_.held -= held.counted;
  held.counted = 0;
  held.bytes = {};
  if (bytes > pages_.limits.held - pages_.held) {
    place_.refuse(fmt::format(
        "pages of more than {} MiB at one time; write the file with smaller pages or row groups",
        pages_.limits.held >> 20));
  }
  held.counted = bytes;
  pages_.held += bytes;
}

ParquetPage ParquetColumn::read_header() {
  std::string bytes;
  for (uint64_t room = kFirstHeader;; room *= 16) {
    const uint64_t size = std::min(room, end_ - at_);
    bytes.resize(size);
    pages_.file.read(bytes.data(), size, at_);
    try {
      return read_parquet_page(bytes, place_);
    } catch (const ThriftError& error) {
      if (error.cut_off && size < end_ - at_ && room < kMostHeader) continue;
      place_.damaged(fmt::format("a page's header at byte {} ({})", at_, error.what()));
    }
  }
}

std::string ParquetColumn::read_packed(const ParquetPage& page) {
  const auto size = static_cast<uint64_t>(page.packed_size);
  if (size > end_ - at_) {
    place_.damaged(fmt::format("a page of {} bytes within the column", size));
  }
  if (size > pages_.limits.held) {
    place_.refuse(fmt::format("a page of more than {} MiB; write the file with smaller pages",
                              pages_.limits.held >> 20));
  }
  std::string packed(size, '\0');
  pages_.file.read(packed.data(), size, at_);
  at_ += size;
  pages_.bytes_read += size + page.header_size;
  if (page.crc) {
    uLong sum = 0;
    // In pieces: zlib counts in 32 bits.
    for (size_t done = 0; done < packed.size();) {
      const size_t piece = std::min(packed.size() - done, size_t{1} << 30);
      sum = crc32(sum, reinterpret_cast<const Bytef*>(packed.data() + done),
                  static_cast<uInt>(piece));
      done += piece;
    }
    if (sum != *page.crc) place_.damaged("a page with the checksum of its header");
  }
  return packed;
}

void ParquetColumn::read_page() {
  if (at_ >= end_) {
    place_.damaged(fmt::format("{} values, and found {}", chunk_.values, chunk_.values - left_));
  }
  const ParquetPage page = read_header();
  at_ += page.header_size;
  std::string packed = read_packed(page);
  switch (page.kind) {
    case ParquetPage::kData: return read_data_page(page, std::move(packed));
    case ParquetPage::kData2: return read_data_page2(page, std::move(packed));
    case ParquetPage::kDictionary: return read_dictionary_page(page, std::move(packed));
    case ParquetPage::kIndex: return;
    default:
      place_.damaged("a page of data or a dictionary, and found number " +
                     std::to_string(page.kind));
  }
}

void ParquetColumn::read_dictionary_page(const ParquetPage& page, std::string packed) {
  if (has_dictionary_ || left_ != chunk_.values) place_.damaged("one dictionary, before the data");
  if (page.encoding != ParquetEncoding::plain &&
      page.encoding != ParquetEncoding::plain_dictionary) {
    place_.refuse("a dictionary in the encoding " + parquet_encoding_name(page.encoding) +
                  ", which is not read; expected PLAIN");
  }
  const auto size = static_cast<uint64_t>(page.size), count = static_cast<uint64_t>(page.values);
  if (count > size) place_.damaged(fmt::format("a dictionary page of {} values", count));
  hold(dictionary_bytes_, size + count * sizeof(ParquetValue));
  dictionary_bytes_.bytes =
      unpack_page(std::move(packed), chunk_.codec, size, place_, pages_.limits.zstd_window_log);
  dictionary_ = read_dictionary(dictionary_bytes_.bytes, leaf_.type, count, place_);
  has_dictionary_ = true;
}

std::string_view ParquetColumn::take_levels(std::string_view& bytes, int64_t encoding) const {
  if (encoding != ParquetEncoding::runs) {
    place_.refuse("levels in the encoding " + parquet_encoding_name(encoding) +
                  ", which is not read; expected RLE");
  }
  uint32_t size = 0;
  if (bytes.size() < sizeof size) place_.damaged("levels in a page");
  std::memcpy(&size, bytes.data(), sizeof size);
  if (size > bytes.size() - sizeof size) place_.damaged("levels within their page");
  const std::string_view levels = bytes.substr(sizeof size, size);
  bytes.remove_prefix(sizeof size + size);
  return levels;
}

void ParquetColumn::read_data_page(const ParquetPage& page, std::string packed) {
  values_.reset();
  const auto size = static_cast<uint64_t>(page.size);
  hold(page_, size);
  page_.bytes =
      unpack_page(std::move(packed), chunk_.codec, size, place_, pages_.limits.zstd_window_log);
  std::string_view bytes = page_.bytes;
  if (leaf_.repetition > 0) {
    repetitions_ =
        RunDecoder(take_levels(bytes, page.repetition_encoding), bits_for(leaf_.repetition));
  }
  if (leaf_.definition > 0) {
    definitions_ =
        RunDecoder(take_levels(bytes, page.definition_encoding), bits_for(leaf_.definition));
  }
  values_ = decode_values(bytes, leaf_.type, page.encoding,
                          has_dictionary_ ? &dictionary_ : nullptr, place_);
  in_page_ = page.values;
}

// Here the levels come first, never packed, with their sizes in the header.
void ParquetColumn::read_data_page2(const ParquetPage& page, std::string packed) {
  values_.reset();
  const auto repetitions = static_cast<uint64_t>(page.repetition_bytes);
  const auto definitions = static_cast<uint64_t>(page.definition_bytes);
  const uint64_t levels = repetitions + definitions, size = static_cast<uint64_t>(page.size);
  if (levels > packed.size() || levels > size) place_.damaged("levels within their page");
  hold(page_, size);
  const std::string head = packed.substr(0, levels);
  packed.erase(0, levels);
  page_.bytes = unpack_page(std::move(packed), page.packed ? chunk_.codec : 0, size - levels,
                            place_, pages_.limits.zstd_window_log);
  page_.bytes.insert(0, head);
  const std::string_view bytes = page_.bytes;
  repetitions_ = RunDecoder(bytes.substr(0, repetitions), bits_for(leaf_.repetition));
  definitions_ = RunDecoder(bytes.substr(repetitions, definitions), bits_for(leaf_.definition));
  values_ = decode_values(bytes.substr(levels), leaf_.type, page.encoding,
                          has_dictionary_ ? &dictionary_ : nullptr, place_);
  in_page_ = page.values;
}

void ParquetColumn::peek_entry() {
  uint32_t repetition = 0, definition = 0;
  if ((leaf_.repetition > 0 && !repetitions_.next(repetition)) ||
      (leaf_.definition > 0 && !definitions_.next(definition)) ||
      repetition > static_cast<uint32_t>(leaf_.repetition) ||
      definition > static_cast<uint32_t>(leaf_.definition)) {
    place_.damaged("a level for each value of a page");
  }
  repetition_ = static_cast<int>(repetition);
  definition_ = static_cast<int>(definition);
  peeked_ = true;
}

bool ParquetColumn::peek() {
  if (peeked_) return true;
  while (in_page_ == 0) {
    if (left_ == 0) return false;
    read_page();
    if (in_page_ > left_) {
      place_.damaged(fmt::format("{} values, and found more", chunk_.values));
    }
    left_ -= in_page_;
  }
  peek_entry();
  return true;
}

bool ParquetColumn::at_end() { return !peek(); }

int ParquetColumn::repetition() {
  definition();
  return repetition_;
}

int ParquetColumn::definition() {
  if (!peek()) place_.damaged("a value for each row");
  return definition_;
}

bool ParquetColumn::take(ParquetValue& value) {
  const bool has_value = definition() == leaf_.definition;
  if (has_value && !values_->next(value)) {
    place_.damaged("a value for each level of a page, each within the page and its dictionary");
  }
  peeked_ = false;
  --in_page_;
  return has_value;
}

}  // namespace hearth
