#include "data/parquet/parquet_footer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/error_format.h"
#include "base/utf8.h"
#include "data/parquet/thrift_reader.h"

namespace hearth {
namespace {

using Type = ThriftReader::Type;

constexpr uint64_t kMostFooter = uint64_t{64} << 20;
constexpr uint64_t kMostElements = 20'000;
constexpr uint64_t kTail = 8;  // the size of the footer, and PAR1

ParquetElement read_element(ThriftReader& in) {
  ParquetElement element;
  in.read_struct([&](int64_t id, Type type) {
    switch (id) {
      case 1: element.type = in.integer(type); return true;
      case 3: element.repetition = in.integer(type); return true;
      case 4: element.name = in.bytes(type); return true;
      case 5: element.children = in.integer(type); return true;
      case 6: element.converted = in.integer(type); return true;
      case 10:
        ThriftReader::expect(type, Type::kStruct);
        in.read_struct([&](int64_t logical, Type kind) {
          element.logical = logical;
          if (logical != 10 || kind != Type::kStruct) return false;
          in.read_struct([&](int64_t field, Type of) {
            if (field == 2) element.is_signed = ThriftReader::boolean(of);
            return field == 2;
          });
          return true;
        });
        return true;
      default: return false;
    }
  });
  if (element.converted >= 11 && element.converted <= 14) element.is_signed = false;
  return element;
}

void read_chunk_data(ThriftReader& in, ParquetChunk& chunk) {
  in.read_struct([&](int64_t id, Type type) {
    switch (id) {
      case 1: chunk.type = in.integer(type); return true;
      case 4: chunk.codec = in.integer(type); return true;
      case 5: chunk.values = in.integer(type); return true;
      case 7: chunk.bytes = in.integer(type); return true;
      case 9: chunk.data_page = in.integer(type); return true;
      case 11: chunk.dictionary_page = in.integer(type); return true;
      default: return false;
    }
  });
}

ParquetChunk read_chunk(ThriftReader& in) {
  ParquetChunk chunk;
  in.read_struct([&](int64_t id, Type type) {
    if (id == 1) chunk.elsewhere = true;
    if (id == 8 || id == 9) chunk.encrypted = true;
    if (id != 3 || type != Type::kStruct) return false;
    read_chunk_data(in, chunk);
    return true;
  });
  return chunk;
}

template <size_t N>
std::string name_of(const std::array<const char*, N>& names, int64_t number) {
  const bool known = number >= 0 && number < static_cast<int64_t>(N) && names[number][0] != 0;
  return known ? names[number] : "number " + std::to_string(number);
}

}  // namespace

std::string parquet_encoding_name(int64_t encoding) {
  static constexpr std::array<const char*, 10> kNames{"PLAIN",
                                                      "",
                                                      "PLAIN_DICTIONARY",
                                                      "RLE",
                                                      "BIT_PACKED",
                                                      "DELTA_BINARY_PACKED",
                                                      "DELTA_LENGTH_BYTE_ARRAY",
                                                      "DELTA_BYTE_ARRAY",
                                                      "RLE_DICTIONARY",
                                                      "BYTE_STREAM_SPLIT"};
  return name_of(kNames, encoding);
}

std::string parquet_codec_name(int64_t codec) {
  static constexpr std::array<const char*, 8> kNames{"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO",
                                                     "BROTLI",       "LZ4",    "ZSTD", "LZ4_RAW"};
  return name_of(kNames, codec);
}

ParquetFooter::ParquetFooter(const InputFile& file, const std::string& name) : name_(name) {
  ParquetPlace place{.file = name};
  const uint64_t size = file.size();
  std::array<char, kTail> tail{};
  if (size < 4 + kTail) {
    place.refuse("a Parquet file that is cut off: expected at least 12 bytes; fetch it again");
  }
  file.read(tail.data(), tail.size(), size - kTail);
  const std::string_view magic(tail.data() + 4, 4);
  if (magic == "PARE") place.refuse("an encrypted Parquet file, which is not read");
  if (magic != "PAR1") {
    place.refuse("a Parquet file that is cut off: expected PAR1 as its last bytes; fetch it again");
  }
  uint32_t length = 0;
  std::memcpy(&length, tail.data(), sizeof length);
  if (length > size - 4 - kTail) place.damaged("a footer within the file");
  if (length > kMostFooter) place.refuse("a Parquet file whose footer has more than 64 MiB");
  begin_ = size - kTail - length;
  bytes_.resize(length);
  file.read(bytes_.data(), length, begin_);
  try {
    read(place);
  } catch (const ThriftError& error) {
    place.damaged("a footer in Thrift's compact protocol (" + std::string(error.what()) + ")");
  }
}

void ParquetFooter::read(ParquetPlace& place) {
  ThriftReader in(bytes_);
  in.read_struct([&](int64_t id, Type type) {
    Type element{};
    switch (id) {
      case 2: {
        const uint64_t count = in.begin_list(type, element);
        ThriftReader::expect(element, Type::kStruct);
        if (count > kMostElements) place.refuse("a Parquet file of more than 10000 columns");
        elements_.clear();
        for (uint64_t i = 0; i < count; ++i) elements_.push_back(read_element(in));
        return true;
      }
      case 3: rows_ = in.integer(type); return true;
      case 4:
        groups_ = static_cast<int64_t>(in.begin_list(type, element));
        ThriftReader::expect(element, Type::kStruct);
        at_ = in.at();
        for (int64_t i = 0; i < groups_; ++i) in.skip(element);
        return true;
      case 8: place.refuse("an encrypted Parquet file, which is not read");
      default: return false;
    }
  });
  for (const ParquetElement& element : elements_) {
    if (find_invalid_utf8(element.name) != std::string::npos) {
      place.damaged("names of columns in UTF-8");
    }
  }
}

std::optional<ParquetGroup> ParquetFooter::next_group(size_t columns) {
  if (group_ == groups_) return std::nullopt;
  ++group_;
  const ParquetPlace place{.file = name_, .group = group_, .groups = groups_};
  ParquetGroup group;
  try {
    ThriftReader in(bytes_, at_);
    in.read_struct([&](int64_t id, Type type) {
      if (id == 3) group.rows = in.integer(type);
      if (id != 1) return id == 3;
      Type element{};
      const uint64_t count = in.begin_list(type, element);
      ThriftReader::expect(element, Type::kStruct);
      if (count != columns || !group.chunks.empty()) {
        place.damaged(fmt::format("{} columns, as the schema has, and found {}", columns, count));
      }
      for (uint64_t i = 0; i < count; ++i) group.chunks.push_back(read_chunk(in));
      return true;
    });
    at_ = in.at();
  } catch (const ThriftError& error) {
    place.damaged("a description in Thrift's compact protocol (" + std::string(error.what()) + ")");
  }
  if (group.rows < 0) place.damaged("a count of rows, and found " + std::to_string(group.rows));
  if (group.chunks.size() != columns) place.damaged("a list of columns");
  return group;
}

ParquetPage read_parquet_page(std::string_view bytes, const ParquetPlace& place) {
  ParquetPage page;
  ThriftReader in(bytes);
  const auto read_data = [&](int64_t id, Type type) {
    switch (id) {
      case 1: page.values = in.integer(type); return true;
      case 2: page.encoding = in.integer(type); return true;
      case 3: page.definition_encoding = in.integer(type); return true;
      case 4: page.repetition_encoding = in.integer(type); return true;
      default: return false;
    }
  };
  const auto read_dictionary = [&](int64_t id, Type type) {
    return id <= 2 ? read_data(id, type) : false;
  };
  const auto read_data2 = [&](int64_t id, Type type) {
    switch (id) {
      case 1: page.values = in.integer(type); return true;
      case 4: page.encoding = in.integer(type); return true;
      case 5: page.definition_bytes = in.integer(type); return true;
      case 6: page.repetition_bytes = in.integer(type); return true;
      case 7: page.packed = ThriftReader::boolean(type); return true;
      default: return false;
    }
  };
  in.read_struct([&](int64_t id, Type type) {
    switch (id) {
      case 1: page.kind = in.integer(type); return true;
      case 2: page.size = in.integer(type); return true;
      case 3: page.packed_size = in.integer(type); return true;
      case 4: page.crc = static_cast<uint32_t>(in.integer(type)); return true;
      default: break;
    }
    const bool of_kind = (id == 5 && page.kind == ParquetPage::kData) ||
                         (id == 7 && page.kind == ParquetPage::kDictionary) ||
                         (id == 8 && page.kind == ParquetPage::kData2);
    if (!of_kind) return false;
    ThriftReader::expect(type, Type::kStruct);
    if (id == 5) in.read_struct(read_data);
    if (id == 7) in.read_struct(read_dictionary);
    if (id == 8) in.read_struct(read_data2);
    return true;
  });
  page.header_size = in.at();
  const auto is_size = [](int64_t size) {
    return size >= 0 && size <= std::numeric_limits<int32_t>::max();
  };
  if (!is_size(page.size) || !is_size(page.packed_size)) place.damaged("a page's sizes");
  const bool has_values = page.kind == ParquetPage::kData || page.kind == ParquetPage::kData2 ||
                          page.kind == ParquetPage::kDictionary;
  if (has_values && !is_size(page.values)) {
    place.damaged("a page's count of values");
  }
  if (!is_size(page.definition_bytes) || !is_size(page.repetition_bytes)) {
    place.damaged("the sizes of a page's levels");
  }
  return page;
}

}  // namespace hearth
