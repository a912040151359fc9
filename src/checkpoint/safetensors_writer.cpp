#include "checkpoint/safetensors_writer.h"

#include <cstring>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"

namespace hearth {
namespace {

std::string entry_text(const SafetensorsEntry& entry) {
  std::string shape = "[";
  for (size_t i = 0; i < entry.shape.size(); ++i) {
    if (i > 0) shape += ",";
    shape += std::to_string(entry.shape[i]);
  }
  return Json(entry.name).dump() + ":{\"dtype\":" + Json(entry.dtype).dump() +
         ",\"shape\":" + shape + "],\"data_offsets\":[" + std::to_string(entry.begin) + "," +
         std::to_string(entry.end) + "]}";
}

std::string header_text(const std::vector<SafetensorsEntry>& entries,
                        const std::vector<std::pair<std::string, std::string>>& metadata) {
  std::string text = "{\"__metadata__\":{";
  bool has_format = false;
  for (const auto& [key, value] : metadata) {
    if (text.back() != '{') text += ',';
    text += Json(key).dump() + ":" + Json(value).dump();
    has_format = has_format || key == "format";
  }
  if (!has_format) text += metadata.empty() ? R"("format":"pt")" : R"(,"format":"pt")";
  text += '}';
  for (const auto& entry : entries) text += "," + entry_text(entry);
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::string& path, std::vector<SafetensorsEntry> entries,
                                     std::vector<std::pair<std::string, std::string>> metadata,
                                     uint64_t chunk_bytes)
    : file_(path) {
  if (chunk_bytes > 0) chunks_.emplace(chunk_bytes);
  for (auto& entry : entries) {
    const auto bytes = safetensors_bytes(entry);
    HEARTH_CHECK(bytes.has_value(), "safetensors: entry without a size: " + entry.name);
    entry.begin = data_bytes_;
    data_bytes_ += *bytes;
    entry.end = data_bytes_;
  }
  const std::string text = header_text(entries, metadata);
  HEARTH_CHECK(text.size() <= kMaxSafetensorsHeader, "safetensors: header too long to write");
  const uint64_t length = text.size();
  file_.reserve(8 + length + data_bytes_);
  char field[8];
  std::memcpy(field, &length, sizeof field);
  put(field, sizeof field);
  put(text.data(), text.size());
}

void SafetensorsWriter::put(const void* data, size_t bytes) {
  file_.write(data, bytes);
  if (chunks_) {
    chunks_->update(data, bytes);
  } else {
    hasher_.update(data, bytes);
  }
}

void SafetensorsWriter::write(const void* data, size_t bytes) {
  HEARTH_CHECK(bytes <= data_bytes_ - written_, "safetensors: more data than the header says");
  put(data, bytes);
  written_ += bytes;
}

Digest SafetensorsWriter::close() {
  HEARTH_CHECK(written_ == data_bytes_, "safetensors: less data than the header says");
  file_.close();
  return hasher_.digest();
}

}  // namespace hearth
