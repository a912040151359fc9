// The metadata of a GGUF file: keys with typed values, in the order in which they were added.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

/// Encodes as GGUF version 3, little endian. A key that was added before is a bug.
class GgufMetadata {
 public:
  void add_text(const std::string& key, std::string_view value);
  void add_u32(const std::string& key, uint32_t value);
  void add_i32(const std::string& key, int32_t value);
  void add_f32(const std::string& key, float value);
  void add_bool(const std::string& key, bool value);
  void add_texts(const std::string& key, const std::vector<std::string>& values);
  void add_i32s(const std::string& key, const std::vector<int32_t>& values);
  void add_f32s(const std::string& key, const std::vector<float>& values);

  bool has(const std::string& key) const { return keys_.contains(key); }
  uint64_t count() const { return keys_.size(); }
  const std::string& bytes() const { return bytes_; }

 private:
  void begin(const std::string& key, uint32_t type);

  std::set<std::string> keys_;
  std::string bytes_;
};

/// Appends a number in little endian, and a string with its length.
template <class T>
void append_gguf(std::string& out, T value) {
  char raw[sizeof value];
  __builtin_memcpy(raw, &value, sizeof value);
  out.append(raw, sizeof value);
}
void append_gguf_text(std::string& out, std::string_view text);

}  // namespace hearth
