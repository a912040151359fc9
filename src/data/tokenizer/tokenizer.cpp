#include "data/tokenizer/tokenizer.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "data/json_fields.h"
#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/bpe.h"
#include "data/tokenizer/nfc.h"
#include "data/tokenizer/pre_tokenizer.h"
#include "model/model_files.h"

namespace hearth {
namespace {

constexpr uint64_t kMaxTokenizerBytes = uint64_t{128} << 20;
constexpr size_t kMaxHoles = size_t{1} << 20;
constexpr size_t kMaxText = size_t{1} << 31;

// Normalizer null or NFC; true for NFC.
bool read_normalizer(const Json& description, const std::string& where) {
  if (description.is_null()) return false;
  if (!description.is_object()) refuse_value(where, description);
  const std::string& type = read_string(description, "type", where);
  if (type != "NFC") refuse_value(where + ".type", Json(type));
  allow_keys(description, where, {"type"});
  return true;
}

// Post-processor and decoder: ByteLevel, whose settings change offsets only, and only in the
// library; a post-processor may be missing.
void check_byte_level(const Json& description, const std::string& where) {
  if (!description.is_object()) refuse_value(where, description);
  const std::string& type = read_string(description, "type", where);
  if (type != "ByteLevel") refuse_value(where + ".type", Json(type));
  allow_keys(description, where, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
}

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

}  // namespace

struct Tokenizer::Parts {
  struct Known {
    std::string_view text;
    bool special = false;
    bool present = false;
  };

  Parts(const Json& json, const Json& config, const std::string& directory)
      : source(directory + "/tokenizer.json"),
        nfc(read_normalizer(member_or_null(checked_top(json, source), "normalizer"),
                            source + ": normalizer")),
        pre_tokenizer(member_or_null(json, "pre_tokenizer"), source),
        bpe(member(json, "model", source), source),
        added(member_or_null(json, "added_tokens"), source) {
    const Json& post = member_or_null(json, "post_processor");
    if (!post.is_null()) check_byte_level(post, source + ": post_processor");
    check_byte_level(member_or_null(json, "decoder"), source + ": decoder");
    for (const auto& token : bpe.tokens()) add(token.id, token.text);
    for (const auto& token : added.tokens()) {
      // An added token may repeat a vocabulary entry, but only under its own id.
      const auto in_vocabulary = bpe.id_of(token.content);
      if (in_vocabulary && *in_vocabulary != token.id) {
        throw input_error(source + ": the added token " + quoted(token.content) + " has the id " +
                          std::to_string(token.id) + ", but " + std::to_string(*in_vocabulary) +
                          " in vocab");
      }
      if (!in_vocabulary) add(token.id, token.content);
      by_id[token.id] = {token.content, token.special, true};
    }
    read_end_token(config, directory + "/tokenizer_config.json");
  }

  // Ids may have holes (padded vocabularies), but not ones that a few tokens could blow up memory
  // with.
  void add(int32_t id, std::string_view text) {
    const size_t most = kMaxHoles + 4 * (bpe.tokens().size() + added.tokens().size());
    if (static_cast<size_t>(id) >= most) {
      throw input_error(source + ": the token " + quoted(text) + " has the id " +
                        std::to_string(id) + ", far above the number of tokens");
    }
    if (static_cast<size_t>(id) >= by_id.size()) by_id.resize(static_cast<size_t>(id) + 1);
    if (by_id[id].present) {
      throw input_error(source + ": the token " + quoted(text) + " and another one have the id " +
                        std::to_string(id));
    }
    by_id[id] = {text, false, true};
  }

  void read_end_token(const Json& config, const std::string& where) {
    config_source = where;
    if (config.is_null()) return;
    if (!config.is_object()) throw input_error(where + ": an object expected");
    end_token = read_config_token(config, "eos_token", where);
    if (end_token.empty()) return;
    for (const auto& token : added.tokens()) {
      if (token.content == end_token) end_id = token.id;
    }
    if (!end_id) end_id = bpe.id_of(end_token);
    if (!end_id) {
      throw input_error(where + ": eos_token " + quoted(end_token) +
                        " is no token of tokenizer.json");
    }
  }

  std::string source;
  std::string config_source;
  bool nfc;
  PreTokenizer pre_tokenizer;
  Bpe bpe;
  AddedTokens added;
  std::vector<Known> by_id;
  std::string end_token;
  std::optional<int32_t> end_id;
};

namespace {

Json read_config(const std::string& directory, bool follow_links) {
  const char* name = "tokenizer_config.json";
  if (!has_model_file(directory, name)) return Json();
  return read_json_file(model_file(directory, name, follow_links), kMaxConfigBytes);
}

}  // namespace

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

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  HEARTH_CHECK(text.size() < kMaxText, "a text below 2 GiB");
  HEARTH_CHECK(find_invalid_utf8(text) == std::string_view::npos, "valid UTF-8");
  Encoding out;
  Bpe::Scratch scratch;
  const auto encode_piece = [&](uint32_t begin, uint32_t end) {
    const std::string_view piece = text.substr(begin, end - begin);
    const size_t first = out.spans.size();
    const auto words_of = [&](std::string_view normal) {
      parts_->pre_tokenizer.split(normal, [&](uint32_t offset, std::string_view word) {
        parts_->bpe.encode(word, offset, out, scratch);
      });
    };
    if (parts_->nfc) {
      const NormalizedText normalized(piece);
      words_of(normalized.text());
      for (size_t i = first; i < out.spans.size(); ++i) {
        out.spans[i] = normalized.original(out.spans[i]);
      }
    } else {
      words_of(piece);
    }
    for (size_t i = first; i < out.spans.size(); ++i) {
      out.spans[i].begin += begin;
      out.spans[i].end += begin;
    }
  };
  uint32_t done = 0;
  uint32_t from = 0;
  while (const auto match = parts_->added.find(text, from)) {
    from = match->span.end;
    const auto overlaps = [&](TextSpan part) {
      return part.begin < match->span.end && match->span.begin < part.end;
    };
    if (is_special(match->id) &&
        std::any_of(options.content.begin(), options.content.end(), overlaps)) {
      continue;
    }
    encode_piece(done, match->span.begin);
    out.ids.push_back(match->id);
    out.spans.push_back(match->span);
    done = match->span.end;
  }
  encode_piece(done, static_cast<uint32_t>(text.size()));
  return out;
}

std::optional<std::string_view> Tokenizer::token(int32_t id) const {
  if (id < 0 || id >= vocabulary_size() || !parts_->by_id[id].present) return std::nullopt;
  return parts_->by_id[id].text;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  StreamDecoder decoder(*this, skip_special);
  std::string text;
  for (const int32_t id : ids) text += decoder.push(id);
  return text + decoder.finish();
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
                      ": no eos_token, the token that ends a text; add one to the file");
  }
  return *parts_->end_id;
}

}  // namespace hearth
