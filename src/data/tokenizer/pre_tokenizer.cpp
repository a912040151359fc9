#include "data/tokenizer/pre_tokenizer.h"

#include "base/error.h"
#include "data/json_fields.h"

namespace hearth {
namespace {

// What ByteLevel splits by when use_regex is set (GPT-2).
constexpr const char* kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace

PreTokenizer::PreTokenizer(const Json& description, const std::string& source) {
  const std::string where = source + ": pre_tokenizer";
  if (!description.is_object()) refuse_value(where, description);
  const std::string& type = read_string(description, "type", where);
  if (type == "ByteLevel") {
    add_byte_level(description, where);
    return;
  }
  if (type != "Sequence") refuse_value(where + ".type", Json(type));
  allow_keys(description, where, {"type", "pretokenizers"});
  const Json& list = member(description, "pretokenizers", where);
  if (!list.is_array() || list.as_array().empty()) refuse_value(where + ".pretokenizers", list);
  const JsonArray& parts = list.as_array();
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string at = where + ".pretokenizers[" + std::to_string(i) + "]";
    const std::string& part = read_string(parts[i], "type", at);
    const bool last = i + 1 == parts.size();
    if (part == "Split" && !last) {
      add_split(parts[i], at);
    } else if (part == "ByteLevel" && last) {
      add_byte_level(parts[i], at);
    } else {
      throw input_error(at + ".type: " + quoted(part) +
                        " is not supported here by this version (Splits, then ByteLevel, are)");
    }
  }
}

void PreTokenizer::add_split(const Json& description, const std::string& where) {
  allow_keys(description, where, {"type", "pattern", "behavior", "invert"});
  if (read_string(description, "behavior", where) != "Isolated") {
    refuse_value(where + ".behavior", member(description, "behavior", where));
  }
  if (read_bool(description, "invert", false, where)) refuse_value(where + ".invert", Json(true));
  const Json& pattern = member(description, "pattern", where);
  allow_keys(pattern, where + ".pattern", {"Regex"});
  splits_.emplace_back(read_string(pattern, "Regex", where + ".pattern"), where + ".pattern");
}

void PreTokenizer::add_byte_level(const Json& description, const std::string& where) {
  allow_keys(description, where, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  if (read_bool(description, "add_prefix_space", true, where)) {
    refuse_value(where + ".add_prefix_space", Json(true));
  }
  if (read_bool(description, "use_regex", true, where)) {
    splits_.emplace_back(kByteLevelPattern, where);
  }
}

}  // namespace hearth
