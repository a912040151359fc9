#include "checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "checkpoint/model_files.h"

namespace hearth {
namespace {

struct TypeBits {
  std::string_view name;
  int bits;
};

// All types of the format (safetensors 0.8).
constexpr TypeBits kTypes[] = {
    {"F64", 64},    {"F32", 32},    {"F16", 16},        {"BF16", 16},       {"I64", 64},
    {"I32", 32},    {"I16", 16},    {"I8", 8},          {"U64", 64},        {"U32", 32},
    {"U16", 16},    {"U8", 8},      {"BOOL", 8},        {"C64", 64},        {"F8_E4M3", 8},
    {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F6_E2M3", 6},
    {"F6_E3M2", 6}, {"F4", 4},
};

struct NamedType {
  DType type;
  std::string_view name;
};

constexpr NamedType kComputed[] = {
    {DType::f64, "F64"}, {DType::f32, "F32"}, {DType::bf16, "BF16"}, {DType::f16, "F16"},
    {DType::i64, "I64"}, {DType::i32, "I32"}, {DType::u8, "U8"},
};

static_assert(std::endian::native == std::endian::little, "safetensors is little endian");

uint64_t read_length(const InputFile& file) {
  char head[64] = {};
  const uint64_t size = file.size();
  const auto seen = static_cast<size_t>(std::min<uint64_t>(size, sizeof head));
  file.read(head, seen, 0);
  refuse_foreign({head, seen}, file.path());
  if (size < 8) {
    throw input_error(file.path() + ": not a safetensors file: " + std::to_string(size) +
                      " bytes, its length field alone takes 8");
  }
  uint64_t length = 0;
  std::memcpy(&length, head, sizeof length);
  if (length > kMaxSafetensorsHeader) {
    throw input_error(file.path() + ": not a safetensors file: header length " +
                      std::to_string(length) + " is above the limit of 100000000 bytes");
  }
  if (length > size - 8) {
    throw input_error(file.path() + ": cut off or not a safetensors file: header length " +
                      std::to_string(length) + ", but the file has " + std::to_string(size) +
                      " bytes");
  }
  return length;
}

}  // namespace

std::string safetensors_name(DType type) {
  const auto* const named = std::ranges::find(kComputed, type, &NamedType::type);
  HEARTH_CHECK(named != std::end(kComputed), "safetensors: type without a name");
  return std::string(named->name);
}

std::optional<DType> safetensors_dtype(std::string_view name) {
  for (const auto& t : kComputed) {
    if (t.name == name) return t.type;
  }
  return std::nullopt;
}

std::optional<int> safetensors_bits(std::string_view name) {
  for (const auto& t : kTypes) {
    if (t.name == name) return t.bits;
  }
  return std::nullopt;
}

std::optional<uint64_t> safetensors_bytes(const SafetensorsEntry& entry) {
  const std::optional<int> bits = safetensors_bits(entry.dtype);
  if (!bits) return std::nullopt;
  uint64_t total = static_cast<uint64_t>(*bits);
  for (const int64_t size : entry.shape) {
    if (size < 0 || __builtin_mul_overflow(total, static_cast<uint64_t>(size), &total)) {
      return std::nullopt;
    }
  }
  if (total % 8 != 0) return std::nullopt;
  return total / 8;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(shape[i]);
  }
  return out + "]";
}

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(path) {
  std::string text(read_length(file_), '\0');
  file_.read(text.data(), text.size(), 8);
  header_ = parse_safetensors_header(text, file_.size(), path);
}

void SafetensorsFile::read(const SafetensorsEntry& entry, void* target, size_t bytes,
                           uint64_t offset) const {
  HEARTH_CHECK(offset <= entry.end - entry.begin && bytes <= entry.end - entry.begin - offset,
               "safetensors: read outside of a tensor");
  file_.read(target, bytes, header_.data_begin + entry.begin + offset);
}

}  // namespace hearth
