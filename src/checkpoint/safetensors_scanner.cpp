// A scanner for exactly the grammar of a safetensors header. A general JSON tree would take twenty
// times the memory of a hostile header; this takes a small multiple of its size.
#include "checkpoint/safetensors_scanner.h"

#include <charconv>
#include <limits>

#include "base/error.h"

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

  uint64_t integer(const std::string& tensor, const char* field) {
    skip_space();
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    const std::string_view digits = text_.substr(begin, at_ - begin);
    const char next = at_ < text_.size() ? text_[at_] : '\0';
    uint64_t value = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool leading_zero = digits.size() > 1 && digits[0] == '0';
    if (parsed.ec != std::errc() || leading_zero || next == '.' || next == 'e' || next == 'E') {
      fail("has, for tensor " + quoted(tensor) + ", a number in \"" + field +
           "\" that is not an integer from 0 to 2^64-1");
    }
    return value;
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
    if (at_ == text_.size() || text_[at_] != '{') {
      fail("has no object for tensor " + quoted(tensor));
    }
    const auto once = [&](bool& seen, const char* field) {
      if (seen)
        fail("has the field \"" + std::string(field) + "\" twice, tensor " + quoted(tensor));
      seen = true;
    };
    object([&](const std::string& field) {
      if (field == "dtype") {
        once(has_dtype, "dtype");
        entry.dtype = string();
        if (!safetensors_bits(entry.dtype)) {
          fail("gives tensor " + quoted(tensor) + " the unknown type " + quoted(entry.dtype));
        }
      } else if (field == "shape") {
        once(has_shape, "shape");
        array([&] {
          const uint64_t size = integer(tensor, "shape");
          if (size > kMaxInt64) fail("has a dimension above 2^63-1, tensor " + quoted(tensor));
          if (entry.shape.size() == kMaxRank) {
            fail("has more than 64 dimensions, tensor " + quoted(tensor));
          }
          entry.shape.push_back(static_cast<int64_t>(size));
        });
      } else if (field == "data_offsets") {
        once(has_offsets, "data_offsets");
        int count = 0;
        array([&] {
          const uint64_t value = integer(tensor, "data_offsets");
          if (count == 0) entry.begin = value;
          if (count == 1) entry.end = value;
          ++count;
        });
        if (count != 2) fail("needs two data_offsets, tensor " + quoted(tensor));
      } else {
        fail("has the unknown field " + quoted(field) + ", tensor " + quoted(tensor));
      }
    });
    if (!has_dtype || !has_shape || !has_offsets) {
      fail("lacks dtype, shape or data_offsets of tensor " + quoted(tensor));
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
