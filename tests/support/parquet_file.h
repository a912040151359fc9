// Writes Parquet files of one column and one row group, as odd as a test wants them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hearth::test {

/// Thrift's compact protocol.
class ThriftText {
 public:
  ThriftText& integer(int id, int64_t value, int type = 5) {
    header(id, type);
    varint((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
    return *this;
  }
  ThriftText& flag(int id, bool value) {
    header(id, value ? 1 : 2);
    return *this;
  }
  ThriftText& bytes(int id, const std::string& value) {
    header(id, 8);
    varint(value.size());
    text_ += value;
    return *this;
  }
  ThriftText& structure(int id, const ThriftText& value) {
    header(id, 12);
    text_ += value.whole();
    return *this;
  }
  ThriftText& list(int id, const std::vector<ThriftText>& values) {
    header(id, 9);
    text_ += static_cast<char>(0xf0 | 12);
    varint(values.size());
    for (const ThriftText& value : values) text_ += value.whole();
    return *this;
  }
  std::string whole() const { return text_ + '\0'; }

 private:
  void header(int id, int type) {
    text_ += static_cast<char>((id - last_) << 4 | type);
    last_ = id;
  }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
  }
  std::string text_;
  int last_ = 0;
};

struct ParquetPageText {
  std::string payload = {};
  int64_t values = 0;
  int64_t encoding = 0;
  int64_t kind = 0;
  std::optional<int64_t> size = {};  // unpacked; none: of the payload
  std::optional<int64_t> packed_size = {};
  std::optional<int64_t> crc = {};
  int64_t level_encoding = 3;
  int64_t definition_bytes = 0, repetition_bytes = 0;  // of kind 3

  std::string text() const {
    const auto bytes = static_cast<int64_t>(payload.size());
    ThriftText header;
    header.integer(1, kind)
        .integer(2, size.value_or(bytes))
        .integer(3, packed_size.value_or(bytes));
    if (crc) header.integer(4, *crc);
    ThriftText inner;
    inner.integer(1, values);
    if (kind == 0) {
      inner.integer(2, encoding).integer(3, level_encoding).integer(4, level_encoding);
      header.structure(5, inner);
    } else if (kind == 2) {
      header.structure(7, inner.integer(2, encoding));
    } else if (kind == 3) {
      inner.integer(2, 0).integer(3, 0).integer(4, encoding);
      header.structure(8, inner.integer(5, definition_bytes).integer(6, repetition_bytes));
    }
    return header.whole() + payload;
  }
};

struct ParquetElementText {
  std::string name;
  int64_t type = -1;  // -1: a group
  int64_t repetition = 0;
  int64_t children = 0;
  int64_t converted = -1;
};

struct ParquetFileText {
  std::vector<ParquetElementText> elements = {{.name = "text", .type = 6, .converted = 0}};
  std::vector<ParquetPageText> pages = {};
  int64_t type = 6, codec = 0;
  int64_t rows = 1, values = 1;
  std::optional<int64_t> at = {};     // of the first page
  std::optional<int64_t> bytes = {};  // of all pages
  std::optional<std::string> path = {};

  std::string text() const {
    std::string file = "PAR1";
    for (const ParquetPageText& page : pages) file += page.text();
    const auto size = static_cast<int64_t>(file.size()) - 4;
    int64_t roots = 0;
    for (size_t i = 0, below = 0; i < elements.size(); ++i) {
      if (below == 0) {
        ++roots;
      } else {
        --below;
      }
      below += static_cast<size_t>(elements[i].children);
    }
    std::vector<ThriftText> schema(1);
    schema[0].bytes(4, "schema").integer(5, roots);
    for (const ParquetElementText& e : elements) {
      ThriftText element;
      if (e.type >= 0) element.integer(1, e.type);
      element.integer(3, e.repetition).bytes(4, e.name);
      if (e.type < 0) element.integer(5, e.children);
      if (e.converted >= 0) element.integer(6, e.converted);
      schema.push_back(element);
    }
    ThriftText data, chunk, group, footer;
    data.integer(1, type)
        .integer(4, codec)
        .integer(5, values, 6)
        .integer(7, bytes.value_or(size), 6);
    data.integer(9, at.value_or(4), 6);
    if (path) chunk.bytes(1, *path);
    chunk.integer(2, 0, 6).structure(3, data);
    group.list(1, {chunk}).integer(2, 0, 6).integer(3, rows, 6);
    footer.integer(1, 1).list(2, schema).integer(3, rows, 6).list(4, {group});
    const std::string tail = footer.whole();
    file += tail;
    for (int i = 0; i < 4; ++i) file += static_cast<char>(tail.size() >> (8 * i));
    return file + "PAR1";
  }
};

}  // namespace hearth::test
