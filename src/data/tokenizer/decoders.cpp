#include "data/tokenizer/decoders.h"

#include "base/error.h"
#include "base/utf8.h"
#include "data/json_fields.h"
#include "data/tokenizer/decode_stages.h"

namespace hearth {
namespace {

bool read_prefixed(const Json& description, const std::string& where) {
  const Json& scheme = member_or_null(description, "prepend_scheme");
  if (scheme.is_null()) return read_bool(description, "add_prefix_space", true, where);
  if (scheme.is_string() && scheme.as_string() == "never") return false;
  if (scheme.is_string() && (scheme.as_string() == "always" || scheme.as_string() == "first")) {
    return true;
  }
  refuse_value(where + ".prepend_scheme", scheme);
}

}  // namespace

Decoder::Decoder(const Json& description, const std::string& source)
    : where_(source + ": decoder") {
  if (description.is_null()) {
    stages_.emplace_back([](TextRoom&) { return join_stage(); });
  } else {
    add(description, where_);
  }
}

void Decoder::add(const Json& description, const std::string& where) {
  if (stages_.size() >= kMaxComponents) refuse_components(where);
  if (!description.is_object()) refuse_value(where, description);
  const std::string& type = read_string(description, "type", where);
  if (type == "ByteLevel") {
    allow_keys(description, where, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    stages_.emplace_back([](TextRoom&) { return byte_level_stage(); });
  } else if (type == "ByteFallback") {
    allow_keys(description, where, {"type"});
    stages_.emplace_back([](TextRoom&) { return byte_fallback_stage(); });
  } else if (type == "Fuse") {
    allow_keys(description, where, {"type"});
    stages_.emplace_back([](TextRoom&) { return fuse_stage(); });
  } else if (type == "Metaspace") {
    allow_keys(description, where,
               {"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
    const std::string mark = read_character(description, "replacement", where);
    const bool prefixed = read_prefixed(description, where);
    stages_.emplace_back([=](TextRoom&) { return metaspace_stage(mark, prefixed); });
  } else if (type == "Replace") {
    allow_keys(description, where, {"type", "pattern", "content"});
    const std::string content = read_string(description, "content", where);
    const auto matcher =
        std::make_shared<const Matcher>(member(description, "pattern", where), where + ".pattern");
    stages_.emplace_back([=](TextRoom& room) { return replace_stage(*matcher, content, room); });
  } else if (type == "Strip") {
    allow_keys(description, where, {"type", "content", "start", "stop"});
    const std::string content = read_character(description, "content", where);
    const auto start =
        static_cast<uint32_t>(read_id(member(description, "start", where), where + ".start"));
    const auto stop =
        static_cast<uint32_t>(read_id(member(description, "stop", where), where + ".stop"));
    stages_.emplace_back([=](TextRoom&) { return strip_stage(content, start, stop); });
  } else if (type == "BPEDecoder") {
    allow_keys(description, where, {"type", "suffix"});
    const std::string suffix = read_string(description, "suffix", where);
    stages_.emplace_back([=](TextRoom& room) { return suffix_stage(suffix, room); });
  } else if (type == "Sequence") {
    allow_keys(description, where, {"type", "decoders"});
    const Json& list = member(description, "decoders", where);
    if (!list.is_array()) refuse_value(where + ".decoders", list);
    for (size_t i = 0; i < list.as_array().size(); ++i) {
      add(list.as_array()[i], where + ".decoders[" + std::to_string(i) + "]");
    }
  } else {
    refuse_value(where + ".type", Json(type));
  }
}

Decoder::Run::Run(const Decoder& decoder) : room_(decoder.where_) {
  for (const MakeStage& make : decoder.stages_) stages_.push_back(make(room_));
}

void Decoder::Run::give(size_t stage, TokenPart part, std::string& text) {
  if (stage == stages_.size()) {
    text += part.text;
  } else {
    stages_[stage]->push(part, [&](TokenPart next) { give(stage + 1, next, text); });
  }
}

std::string Decoder::Run::push(std::string_view token) {
  room_.add_text(token.size());
  std::string text;
  give(0, {token}, text);
  return text;
}

std::string Decoder::Run::finish() {
  std::string text;
  for (size_t stage = 0; stage < stages_.size(); ++stage) {
    stages_[stage]->finish([&](TokenPart next) { give(stage + 1, next, text); });
  }
  return text;
}

}  // namespace hearth
