// Reads Thrift's compact protocol, in which Parquet writes its footer and the headers of its pages.
// Source: "Thrift Compact protocol encoding" of Apache Thrift.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string_view>

namespace hearth {

/// Bytes that are no Thrift, or that end too early.
class ThriftError : public std::runtime_error {
 public:
  ThriftError(const char* what, bool cut) : std::runtime_error(what), cut_off(cut) {}
  bool cut_off;  // more bytes may make it whole
};

/// Never reads beyond its bytes, and allocates nothing. Every value takes at least one byte, so a
/// list of more elements than bytes are left is refused when its header is read.
class ThriftReader {
 public:
  enum Type : uint8_t {
    kTrue = 1,
    kFalse,
    kInt8,
    kInt16,
    kInt32,
    kInt64,
    kDouble,
    kBytes,
    kList,
    kSet,
    kMap,
    kStruct,
    kUuid
  };

  explicit ThriftReader(std::string_view bytes, size_t at = 0) : bytes_(bytes), at_(at) {}

  /// Reads a struct. `on_field(id, type)` reads the value of a field and returns true, or returns
  /// false to have it skipped.
  template <class F>
  void read_struct(const F& on_field) {
    int64_t id = 0;
    while (const uint8_t header = byte()) {
      const int64_t step = header >> 4;
      const auto type = static_cast<Type>(header & 15);
      id = step != 0 ? id + step : zigzag();
      if (!on_field(id, type)) skip(type);
    }
  }
  /// Reads a list; calls `on_element(type)` for each, which must read it.
  template <class F>
  void read_list(Type type, const F& on_element) {
    Type element{};
    for (uint64_t left = begin_list(type, element); left > 0; --left) on_element(element);
  }
  /// Reads the header of a list and returns how many elements follow.
  uint64_t begin_list(Type type, Type& element);

  // Values of a field of this type; ThriftError if it is another.
  int64_t integer(Type type);
  static bool boolean(Type type);
  std::string_view bytes(Type type);  // a view of the reader's bytes
  static void expect(Type type, Type wanted);

  void skip(Type type, int depth = 0);
  size_t at() const { return at_; }

 private:
  uint8_t byte();
  uint64_t varint();
  int64_t zigzag();
  std::string_view take(uint64_t size);

  std::string_view bytes_;
  size_t at_;
};

}  // namespace hearth
