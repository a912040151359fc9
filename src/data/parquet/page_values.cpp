#include "data/parquet/page_values.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/error_format.h"
#include "data/parquet/run_decoders.h"

namespace hearth {
namespace {

/// Bytes per value; 0: not fixed.
size_t width_of(ParquetType type) {
  switch (type) {
    case ParquetType::int32:
    case ParquetType::float32: return 4;
    case ParquetType::int64:
    case ParquetType::float64: return 8;
    default: return 0;
  }
}

class PlainValues final : public ValueDecoder {
 public:
  PlainValues(std::string_view bytes, ParquetType type)
      : bytes_(bytes), boolean_(type == ParquetType::boolean), width_(width_of(type)) {}

  bool next(ParquetValue& value) override {
    if (boolean_) {
      if (bit_ / 8 >= bytes_.size()) return false;
      value.bits = static_cast<uint8_t>(bytes_[bit_ / 8]) >> (bit_ % 8) & 1;
      ++bit_;
      return true;
    }
    if (width_ > 0) {
      if (bytes_.size() < width_) return false;
      value.bits = 0;
      std::memcpy(&value.bits, bytes_.data(), width_);
      bytes_.remove_prefix(width_);
      return true;
    }
    uint32_t size = 0;
    if (bytes_.size() < sizeof size) return false;
    std::memcpy(&size, bytes_.data(), sizeof size);
    if (size > bytes_.size() - sizeof size) return false;
    value.bytes = bytes_.substr(sizeof size, size);
    bytes_.remove_prefix(sizeof size + size);
    return true;
  }

 private:
  std::string_view bytes_;
  bool boolean_;
  size_t width_;
  uint64_t bit_ = 0;
};

class DictionaryValues final : public ValueDecoder {
 public:
  DictionaryValues(std::string_view bytes, const std::vector<ParquetValue>& dictionary,
                   const ParquetPlace& place)
      : dictionary_(dictionary) {
    if (bytes.empty()) return;  // of nulls alone
    const int width = static_cast<uint8_t>(bytes[0]);
    if (width > 32) place.damaged(fmt::format("indices of at most 32 bits, and found {}", width));
    indices_ = RunDecoder(bytes.substr(1), width);
    any_ = true;
  }

  bool next(ParquetValue& value) override {
    uint32_t index = 0;
    if (!any_ || !indices_.next(index) || index >= dictionary_.size()) return false;
    value = dictionary_[index];
    return true;
  }

 private:
  const std::vector<ParquetValue>& dictionary_;
  RunDecoder indices_;
  bool any_ = false;
};

/// RLE, of booleans: a size of 4 bytes comes first.
class BooleanRuns final : public ValueDecoder {
 public:
  explicit BooleanRuns(std::string_view bytes)
      : runs_(bytes.substr(std::min<size_t>(4, bytes.size())), 1) {}

  bool next(ParquetValue& value) override {
    uint32_t bit = 0;
    if (!runs_.next(bit)) return false;
    value.bits = bit;
    return true;
  }

 private:
  RunDecoder runs_;
};

class DeltaIntegers final : public ValueDecoder {
 public:
  explicit DeltaIntegers(std::string_view bytes) : values_(bytes) {}

  bool next(ParquetValue& value) override {
    int64_t integer = 0;
    if (!values_.next(integer)) return false;
    value.bits = static_cast<uint64_t>(integer);
    return true;
  }

 private:
  DeltaDecoder values_;
};

/// DELTA_LENGTH_BYTE_ARRAY: lengths, then all bytes.
class DeltaLengths final : public ValueDecoder {
 public:
  explicit DeltaLengths(std::string_view bytes) : lengths_(bytes) {
    whole_ = lengths_.find_end(bytes_);
  }

  bool next(ParquetValue& value) override {
    int64_t length = 0;
    if (!whole_ || !lengths_.next(length)) return false;
    if (length < 0 || static_cast<uint64_t>(length) > bytes_.size()) return false;
    value.bytes = bytes_.substr(0, static_cast<size_t>(length));
    bytes_.remove_prefix(static_cast<size_t>(length));
    return true;
  }

 private:
  DeltaDecoder lengths_;
  std::string_view bytes_;
  bool whole_ = false;
};

/// DELTA_BYTE_ARRAY: how much of the value before is repeated, then the rest of each.
class DeltaBytes final : public ValueDecoder {
 public:
  explicit DeltaBytes(std::string_view bytes) : shared_(bytes), rests_(rests_of(bytes)) {}

  bool next(ParquetValue& value) override {
    int64_t shared = 0;
    ParquetValue rest;
    if (!shared_.next(shared) || !rests_.next(rest)) return false;
    if (shared < 0 || static_cast<uint64_t>(shared) > last_.size()) return false;
    last_.resize(static_cast<size_t>(shared));
    last_ += rest.bytes;
    value.bytes = last_;
    return true;
  }

 private:
  std::string_view rests_of(std::string_view bytes) const {
    std::string_view rest;
    return shared_.find_end(rest) ? rest : bytes.substr(bytes.size());
  }

  DeltaDecoder shared_;
  DeltaLengths rests_;
  std::string last_;
};

/// BYTE_STREAM_SPLIT: the first bytes of all values, then the second ones, and so on.
class SplitValues final : public ValueDecoder {
 public:
  SplitValues(std::string_view bytes, size_t width)
      : bytes_(bytes), width_(width), count_(bytes.size() / width) {}

  bool next(ParquetValue& value) override {
    if (at_ == count_) return false;
    value.bits = 0;
    for (size_t i = 0; i < width_; ++i) {
      value.bits |= static_cast<uint64_t>(static_cast<uint8_t>(bytes_[i * count_ + at_]))
                    << (8 * i);
    }
    ++at_;
    return true;
  }

 private:
  std::string_view bytes_;
  size_t width_, count_, at_ = 0;
};

}  // namespace

std::vector<ParquetValue> read_dictionary(std::string_view page, ParquetType type, size_t count,
                                          const ParquetPlace& place) {
  PlainValues values(page, type);
  std::vector<ParquetValue> dictionary;
  ParquetValue value;
  while (dictionary.size() < count && values.next(value)) dictionary.push_back(value);
  if (dictionary.size() < count) {
    place.damaged(fmt::format("a dictionary of {} values, and found {}", count, dictionary.size()));
  }
  return dictionary;
}

std::unique_ptr<ValueDecoder> decode_values(std::string_view bytes, ParquetType type,
                                            int64_t encoding,
                                            const std::vector<ParquetValue>* dictionary,
                                            const ParquetPlace& place) {
  const bool is_bytes = type == ParquetType::bytes, is_boolean = type == ParquetType::boolean;
  const bool is_integer = type == ParquetType::int32 || type == ParquetType::int64;
  switch (encoding) {
    case ParquetEncoding::plain: return std::make_unique<PlainValues>(bytes, type);
    case ParquetEncoding::plain_dictionary:
    case ParquetEncoding::dictionary:
      if (is_boolean) break;
      if (dictionary == nullptr) place.damaged("a dictionary before the pages that need it");
      return std::make_unique<DictionaryValues>(bytes, *dictionary, place);
    case ParquetEncoding::runs:
      if (is_boolean) return std::make_unique<BooleanRuns>(bytes);
      break;
    case ParquetEncoding::delta:
      if (is_integer) return std::make_unique<DeltaIntegers>(bytes);
      break;
    case ParquetEncoding::delta_length:
      if (is_bytes) return std::make_unique<DeltaLengths>(bytes);
      break;
    case ParquetEncoding::delta_bytes:
      if (is_bytes) return std::make_unique<DeltaBytes>(bytes);
      break;
    case ParquetEncoding::split:
      if (width_of(type) > 0) return std::make_unique<SplitValues>(bytes, width_of(type));
      break;
    default: break;
  }
  place.refuse("values in the encoding " + parquet_encoding_name(encoding) +
               ", which is not read here; expected PLAIN, a dictionary or DELTA");
}

}  // namespace hearth
