#include "data/parquet/thrift_reader.h"

namespace hearth {

namespace {

constexpr int kMostDepth = 32;

}  // namespace

uint8_t ThriftReader::byte() { return static_cast<uint8_t>(take(1)[0]); }

std::string_view ThriftReader::take(uint64_t size) {
  if (size > bytes_.size() - at_) throw ThriftError("ends too early", true);
  const std::string_view taken = bytes_.substr(at_, size);
  at_ += size;
  return taken;
}

uint64_t ThriftReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint8_t piece = byte();
    value |= static_cast<uint64_t>(piece & 0x7f) << shift;
    if (piece < 0x80) return value;
  }
  throw ThriftError("an integer of more than 64 bits", false);
}

int64_t ThriftReader::zigzag() {
  const uint64_t value = varint();
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

void ThriftReader::expect(Type type, Type wanted) {
  if (type != wanted) throw ThriftError("a field of another type", false);
}

int64_t ThriftReader::integer(Type type) {
  if (type == kInt8) return static_cast<int8_t>(byte());
  if (type != kInt16 && type != kInt32) expect(type, kInt64);
  return zigzag();
}

bool ThriftReader::boolean(Type type) {
  if (type != kFalse) expect(type, kTrue);
  return type == kTrue;
}

std::string_view ThriftReader::bytes(Type type) {
  expect(type, kBytes);
  return take(varint());
}

uint64_t ThriftReader::begin_list(Type type, Type& element) {
  if (type != kSet) expect(type, kList);
  const uint8_t header = byte();
  element = static_cast<Type>(header & 15);
  const uint64_t size = header >> 4 == 15 ? varint() : header >> 4;
  if (size > bytes_.size() - at_) throw ThriftError("ends too early", true);
  return size;
}

void ThriftReader::skip(Type type, int depth) {
  if (depth > kMostDepth) throw ThriftError("nested too deeply", false);
  switch (type) {
    case kTrue:
    case kFalse: return;
    case kInt8: take(1); return;
    case kInt16:
    case kInt32:
    case kInt64: varint(); return;
    case kDouble: take(8); return;
    case kBytes: take(varint()); return;
    case kUuid: take(16); return;
    case kList:
    case kSet: {
      Type element{};
      for (uint64_t left = begin_list(type, element); left > 0; --left) {
        if (element == kTrue || element == kFalse) {  // a byte each, in a list
          take(1);
        } else {
          skip(element, depth + 1);
        }
      }
      return;
    }
    case kMap: {
      const uint64_t size = varint();
      if (size == 0) return;
      if (size > bytes_.size() - at_) throw ThriftError("ends too early", true);
      const uint8_t types = byte();
      for (uint64_t i = 0; i < 2 * size; ++i) {
        const auto each = static_cast<Type>(i % 2 == 0 ? types >> 4 : types & 15);
        if (each == kTrue || each == kFalse) {
          take(1);
        } else {
          skip(each, depth + 1);
        }
      }
      return;
    }
    case kStruct:
      while (const uint8_t header = byte()) {
        if (header >> 4 == 0) varint();
        skip(static_cast<Type>(header & 15), depth + 1);
      }
      return;
  }
  throw ThriftError("an unknown type", false);
}

}  // namespace hearth
