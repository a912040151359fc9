#include "checkpoint/gguf_metadata.h"

#include <bit>

#include "base/error.h"

namespace hearth {
namespace {

static_assert(std::endian::native == std::endian::little);

// Value types of the format.
constexpr uint32_t kU32 = 4, kI32 = 5, kF32 = 6, kBool = 7, kText = 8, kArray = 9;

template <class T>
void append_gguf_list(std::string& out, uint32_t type, const std::vector<T>& values) {
  append_gguf(out, type);
  append_gguf(out, static_cast<uint64_t>(values.size()));
  for (const T value : values) append_gguf(out, value);
}

}  // namespace

void append_gguf_text(std::string& out, std::string_view text) {
  append_gguf(out, static_cast<uint64_t>(text.size()));
  out += text;
}

void GgufMetadata::begin(const std::string& key, uint32_t type) {
  HEARTH_CHECK(keys_.insert(key).second, "gguf: the key " + key + " twice");
  append_gguf_text(bytes_, key);
  append_gguf(bytes_, type);
}

void GgufMetadata::add_text(const std::string& key, std::string_view value) {
  begin(key, kText);
  append_gguf_text(bytes_, value);
}

void GgufMetadata::add_u32(const std::string& key, uint32_t value) {
  begin(key, kU32);
  append_gguf(bytes_, value);
}

void GgufMetadata::add_i32(const std::string& key, int32_t value) {
  begin(key, kI32);
  append_gguf(bytes_, value);
}

void GgufMetadata::add_f32(const std::string& key, float value) {
  begin(key, kF32);
  append_gguf(bytes_, value);
}

void GgufMetadata::add_bool(const std::string& key, bool value) {
  begin(key, kBool);
  bytes_ += static_cast<char>(value ? 1 : 0);
}

void GgufMetadata::add_texts(const std::string& key, const std::vector<std::string>& values) {
  begin(key, kArray);
  append_gguf(bytes_, kText);
  append_gguf(bytes_, static_cast<uint64_t>(values.size()));
  for (const std::string& value : values) append_gguf_text(bytes_, value);
}

void GgufMetadata::add_i32s(const std::string& key, const std::vector<int32_t>& values) {
  begin(key, kArray);
  append_gguf_list(bytes_, kI32, values);
}

void GgufMetadata::add_f32s(const std::string& key, const std::vector<float>& values) {
  begin(key, kArray);
  append_gguf_list(bytes_, kF32, values);
}

}  // namespace hearth
