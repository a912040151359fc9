// A scanner for exactly the grammar of a safetensors header. A general JSON tree would take twenty
// times the memory of a hostile header; this takes a small multiple of its size.
#include "checkpoint/safetensors_scanner.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/error.h"
#include "checkpoint/safetensors.h"

namespace hearth {
namespace {

constexpr size_t kMaxRank = 64;          // torch's own limit
constexpr size_t kMaxMetadata = 65'536;  // entries of __metadata__
constexpr uint64_t kMaxInt64 = std::numeric_limits<int64_t>::max();

void append_utf8(std::string& out, uint32_t code) {
  const auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xe0 | code >> 12);
    } else {
      put(0xf0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3f));
    }
    put(0x80 | (code >> 6 & 0x3f));
  }
  put(0x80 | (code & 0x3f));
}

class HeaderScanner {
 public:
  HeaderScanner(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  SafetensorsHeader scan() {
    SafetensorsHeader header;
    if (text_.empty() || text_[0] != '{') fail("does not begin with '{'");
    bool has_metadata = false;
    object([&](std::string name) {
      if (name == "__metadata__") {
        if (has_metadata) fail("has the key \"__metadata__\" twice");
        has_metadata = true;
        scan_metadata(header);
      } else {
        header.entries.push_back(scan_entry(std::move(name)));
      }
    });
    skip_space();
    if (at_ != text_.size()) fail("goes on after its JSON object");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw input_error(source_ + ": the safetensors header " + what + " (byte " +
                      std::to_string(at_) + " of the header)");
  }

  /// What is wrong with a field of a tensor, or with the tensor itself if `field` is empty.
  [[noreturn]] void fail_field(const std::string& tensor, const std::string& field,
                               const std::string& what) const {
    throw input_error(source_ + ": tensor " + quoted(tensor) + ": " +
                      (field.empty() ? "" : field + ": ") + what + " (byte " + std::to_string(at_) +
                      " of the header)");
  }

  /// The kind of value at the cursor, for messages.
  std::string found() {
    skip_space();
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    switch (c) {
      case '\0': return "found the end of the header";
      case '"': return "found a string";
      case '{': return "found an object";
      case '[': return "found a list";
      case 't':
      case 'f': return "found true or false";
      case 'n': return "found null";
      default: break;
    }
    const size_t end = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
    return "found " + quoted(text_.substr(at_, end - at_));
  }

  bool comes(char c) {
    skip_space();
    return at_ < text_.size() && text_[at_] == c;
  }

  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
  }

  /// Skips space, then takes c if it comes next.
  bool take(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!take(c)) fail(std::string("is not valid JSON: expected '") + c + "'");
  }

  /// Calls member(key) with the cursor after each ':'.
  template <class F>
  void object(F member) {
    expect('{');
    if (take('}')) return;
    do {
      std::string key = string();
      expect(':');
      member(std::move(key));
    } while (take(','));
    expect('}');
  }

  template <class F>
  void array(F element) {
    expect('[');
    if (take(']')) return;
    do element();
    while (take(','));
    expect(']');
  }

  std::string string() {
    skip_space();
    if (at_ == text_.size() || text_[at_] != '"') fail("is not valid JSON: expected a string");
    ++at_;
    std::string out;
    for (;;) {
      const size_t run = at_;
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
             static_cast<unsigned char>(text_[at_]) >= 0x20) {
        ++at_;
      }
      out.append(text_.substr(run, at_ - run));
      if (at_ == text_.size()) fail("ends inside a string");
      if (text_[at_] == '"') {
        ++at_;
        return out;
      }
      if (text_[at_] != '\\') fail("has a control character in a string");
      ++at_;
      escape(out);
    }
  }

  void escape(std::string& out) {
    if (at_ == text_.size()) fail("ends inside a string");
    const char c = text_[at_++];
    switch (c) {
      case '"':
      case '\\':
      case '/': out += c; return;
      case 'b': out += '\b'; return;
      case 'f': out += '\f'; return;
      case 'n': out += '\n'; return;
      case 'r': out += '\r'; return;
      case 't': out += '\t'; return;
      case 'u': break;
      default: fail("has an unknown escape in a string");
    }
    uint32_t code = hex4();
    if (code >= 0xdc00 && code < 0xe000) fail("has a lone surrogate in a string");
    if (code >= 0xd800 && code < 0xdc00) {
      if (text_.substr(at_, 2) != "\\u") fail("has a lone surrogate in a string");
      at_ += 2;
      const uint32_t low = hex4();
      if (low < 0xdc00 || low >= 0xe000) fail("has a lone surrogate in a string");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    append_utf8(out, code);
  }

  uint32_t hex4() {
    uint32_t value = 0;
    const std::string_view digits = text_.substr(at_, 4);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc() || digits.size() != 4 || end != digits.data() + 4) {
      fail("has a bad \\u escape in a string");
    }
    at_ += 4;
    return value;
  }

  /// One of the whole numbers that `expected` names.
  uint64_t integer(const std::string& tensor, const char* field, const char* expected) {
    skip_space();
    const size_t begin = at_;
    size_t end = at_;
    while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
    const std::string_view digits = text_.substr(begin, end - begin);
    const char next = end < text_.size() ? text_[end] : '\0';
    uint64_t value = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool leading_zero = digits.size() > 1 && digits[0] == '0';
    if (parsed.ec != std::errc() || leading_zero || next == '.' || next == 'e' || next == 'E') {
      fail_field(tensor, field, std::string("expected ") + expected + ", " + found());
    }
    at_ = end;
    return value;
  }

  void scan_shape(SafetensorsEntry& entry) {
    constexpr const char* kExpected = "whole numbers from 0 to 2^63-1";
    if (!comes('[')) {
      fail_field(entry.name, "shape",
                 std::string("expected a list of ") + kExpected + ", " + found());
    }
    array([&] {
      const uint64_t size = integer(entry.name, "shape", kExpected);
      if (size > kMaxInt64) {
        fail_field(
            entry.name, "shape",
            std::string("expected ") + kExpected + ", found " + quoted(std::to_string(size)));
      }
      if (entry.shape.size() == kMaxRank) {
        fail_field(entry.name, "shape", "more than 64 dimensions");
      }
      entry.shape.push_back(static_cast<int64_t>(size));
    });
  }

  void scan_offsets(SafetensorsEntry& entry) {
    constexpr const char* kExpected = "two whole numbers";
    if (!comes('[')) {
      fail_field(entry.name, "data_offsets", std::string("expected ") + kExpected + ", " + found());
    }
    uint64_t count = 0;
    array([&] {
      const uint64_t value = integer(entry.name, "data_offsets", kExpected);
      if (count == 0) entry.begin = value;
      if (count == 1) entry.end = value;
      ++count;
    });
    if (count != 2) {
      fail_field(entry.name, "data_offsets",
                 std::string("expected ") + kExpected + ", found " + std::to_string(count));
    }
  }

  void scan_metadata(SafetensorsHeader& header) {
    object([&](std::string key) {
      skip_space();
      if (at_ < text_.size() && text_[at_] != '"') {
        fail("has a value in __metadata__ that is not a string, for the key " + quoted(key));
      }
      header.metadata.emplace_back(std::move(key), string());
      if (header.metadata.size() > kMaxMetadata) {
        fail("has more than " + std::to_string(kMaxMetadata) + " entries in __metadata__");
      }
    });
  }

  SafetensorsEntry scan_entry(std::string name) {
    SafetensorsEntry entry;
    entry.name = std::move(name);
    const std::string& tensor = entry.name;
    bool has_dtype = false, has_shape = false, has_offsets = false;
    skip_space();
    if (!comes('{')) {
      fail_field(tensor, "", "expected an object of dtype, shape and data_offsets, " + found());
    }
    const auto once = [&](bool& seen, const char* field) {
      if (seen) fail_field(tensor, field, "stands there twice");
      seen = true;
    };
    object([&](const std::string& field) {
      if (field == "dtype") {
        once(has_dtype, "dtype");
        if (!comes('"')) fail_field(tensor, field, "expected the name of a type, " + found());
        entry.dtype = string();
        if (!safetensors_bits(entry.dtype)) {
          fail_field(tensor, field, "unknown type " + quoted(entry.dtype));
        }
      } else if (field == "shape") {
        once(has_shape, "shape");
        scan_shape(entry);
      } else if (field == "data_offsets") {
        once(has_offsets, "data_offsets");
        scan_offsets(entry);
      } else {
        fail_field(tensor, "", "unknown field " + quoted(field));
      }
    });
    if (!has_dtype || !has_shape || !has_offsets) {
      const char* missing = !has_dtype ? "dtype" : !has_shape ? "shape" : "data_offsets";
      fail_field(tensor, missing, "is missing");
    }
    return entry;
  }

  std::string_view text_;
  const std::string& source_;
  size_t at_ = 0;
};

}  // namespace

SafetensorsHeader scan_safetensors_header(std::string_view text, const std::string& source) {
  return HeaderScanner(text, source).scan();
}

}  // namespace hearth
