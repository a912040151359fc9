#include "data/tokenizer/tokenizer.h"

#include <set>

#include "base/error.h"
#include "checkpoint/model_files.h"
#include "data/json_fields.h"
#include "data/tokenizer/stream_decoder.h"
#include "data/tokenizer/tokenizer_parts.h"

namespace hearth {
namespace {

constexpr size_t kMaxHoles = size_t{1} << 20;

// A token of tokenizer_config.json: a string, an object with its content, or null.
std::string read_config_token(const Json& config, std::string_view key, const std::string& where) {
  const Json& value = member_or_null(config, key);
  if (value.is_null()) return "";
  const Json& content = value.is_object() ? member_or_null(value, "content") : value;
  if (!content.is_string()) {
    throw input_error(where + ": " + std::string(key) +
                      " is neither a string nor an object with one");
  }
  return content.as_string();
}

const Json& checked_top(const Json& json, const std::string& source) {
  allow_keys(json, source,
             {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
              "post_processor", "decoder", "model"});
  return json;
}

Json read_config(const std::string& directory, bool follow_links) {
  const char* name = "tokenizer_config.json";
  if (!has_model_file(directory, name)) return Json();
  return read_json_file(model_file(directory, name, follow_links), kMaxConfigBytes);
}

}  // namespace

Tokenizer::Parts::Parts(const Json& json, const Json& config, const std::string& directory)
    : source(directory + "/tokenizer.json"),
      config_source(directory + "/tokenizer_config.json"),
      normalizer(member_or_null(checked_top(json, source), "normalizer"), source),
      pre_tokenizer(member_or_null(json, "pre_tokenizer"), source),
      bpe(member(json, "model", source), source, pre_tokenizer.gives_bytes()),
      added(member_or_null(json, "added_tokens"), bpe, normalizer, source),
      post_processor(member_or_null(json, "post_processor"), source),
      decoder(member_or_null(json, "decoder"), source) {
  for (const auto& token : bpe.tokens()) add(token.id, token.text);
  std::set<std::string_view> specials;
  for (const auto& token : added.tokens()) {
    if (!bpe.id_of(token.content)) add(token.id, token.content);
    if (token.special) specials.insert(token.content);
  }
  // As in the official library, a special token that its normal form hides is not one when decoded.
  for (const auto& token : added.tokens()) {
    by_id[token.id].text = token.decoded;
    by_id[token.id].special = specials.contains(token.decoded);
  }
  read_end_token(config);
}

// Ids may have holes (padded vocabularies), but not ones that a few tokens could blow up memory with.
void Tokenizer::Parts::add(int32_t id, std::string_view text) {
  const size_t most = kMaxHoles + 4 * (bpe.tokens().size() + added.tokens().size());
  if (static_cast<size_t>(id) >= most) {
    throw input_error(source + ": the token " + quoted(text) + " has the id " + std::to_string(id) +
                      ", far above the number of tokens");
  }
  if (static_cast<size_t>(id) >= by_id.size()) by_id.resize(static_cast<size_t>(id) + 1);
  if (by_id[id].present) {
    throw input_error(source + ": the token " + quoted(text) + " and another one have the id " +
                      std::to_string(id));
  }
  by_id[id] = {text, false, true};
}

void Tokenizer::Parts::read_end_token(const Json& config) {
  if (config.is_null()) return;
  if (!config.is_object()) throw input_error(config_source + ": expected an object");
  end_token = read_config_token(config, "eos_token", config_source);
  if (end_token.empty()) return;
  for (const auto& token : added.tokens()) {
    if (token.content == end_token) end_id = token.id;
  }
  if (!end_id) end_id = bpe.id_of(end_token);
  if (!end_id) {
    throw input_error(config_source + ": eos_token " + quoted(end_token) +
                      " is not a token of tokenizer.json");
  }
}

Tokenizer::Tokenizer(const std::string& directory, bool follow_links)
    : Tokenizer(
          read_json_file(model_file(directory, "tokenizer.json", follow_links), kMaxTokenizerBytes),
          read_config(directory, follow_links), directory) {}

Tokenizer::Tokenizer(const Json& tokenizer_json, const Json& tokenizer_config,
                     const std::string& directory)
    : parts_(std::make_unique<Parts>(tokenizer_json, tokenizer_config, directory)) {}

Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  StreamDecoder decoder(*this, skip_special);
  std::string text;
  for (const int32_t id : ids) text += decoder.push(id);
  return text + decoder.finish();
}

std::optional<std::string_view> Tokenizer::token(int32_t id) const {
  if (id < 0 || id >= vocabulary_size() || !parts_->by_id[id].present) return std::nullopt;
  return parts_->by_id[id].text;
}

int64_t Tokenizer::vocabulary_size() const { return static_cast<int64_t>(parts_->by_id.size()); }

std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
  for (const auto& added : parts_->added.tokens()) {
    if (added.content == token) return added.id;
  }
  return parts_->bpe.id_of(token);
}

bool Tokenizer::is_special(int32_t id) const {
  return id >= 0 && id < vocabulary_size() && parts_->by_id[id].special;
}

bool Tokenizer::has_end_token() const { return parts_->end_id.has_value(); }

const std::string& Tokenizer::end_token() const {
  end_id();
  return parts_->end_token;
}

int32_t Tokenizer::end_id() const {
  if (!parts_->end_id) {
    throw input_error(parts_->config_source +
                      ": no eos_token to end a text with; add one to the file");
  }
  return *parts_->end_id;
}

}  // namespace hearth
