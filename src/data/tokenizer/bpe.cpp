// Reading the model; bpe_encode.cpp uses it.
#include "data/tokenizer/bpe.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>

#include "base/error.h"
#include "base/utf8.h"
#include "data/json_fields.h"
#include "data/tokenizer/byte_alphabet.h"

namespace hearth {
namespace {

constexpr int32_t kNoToken = -1;
constexpr uint32_t kTableCharacters = 0x10000;
constexpr size_t kNeighbourBits = size_t{1} << 20;

std::string string_or_empty(const Json& model, std::string_view key, const std::string& where) {
  return member_or_null(model, key).is_null() ? "" : read_string(model, key, where);
}

void check_kind(const Json& model, const std::string& where) {
  if (!model.is_object()) refuse_value(where, model);
  const Json& type = member_or_null(model, "type");
  // Old files leave the type out; merges are what only BPE has.
  const bool bpe = type.is_null() ? model.find("merges") != nullptr
                                  : type.is_string() && type.as_string() == "BPE";
  if (!bpe) refuse_value(where + ".type", type);
  allow_keys(model, where,
             {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
              "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
  const Json& dropout = member_or_null(model, "dropout");
  if (!dropout.is_null() && !(dropout.is_number() && dropout.as_double() == 0)) {
    refuse_value(where + ".dropout", dropout);
  }
}

// A merge as "left right" or ["left", "right"].
std::pair<std::string_view, std::string_view> read_pair(const Json& item,
                                                        const std::string& where) {
  if (item.is_string()) {
    const std::string_view both = item.as_string();
    const size_t space = both.find(' ');
    if (space == std::string_view::npos || both.find(' ', space + 1) != std::string_view::npos) {
      throw input_error(where + ": expected two tokens and one space, found " + quoted(both));
    }
    return {both.substr(0, space), both.substr(space + 1)};
  }
  if (item.is_array() && item.as_array().size() == 2 && item.as_array()[0].is_string() &&
      item.as_array()[1].is_string()) {
    return {item.as_array()[0].as_string(), item.as_array()[1].as_string()};
  }
  throw input_error(where + ": expected a string or a pair of strings");
}

}  // namespace

Bpe::Bpe(const Json& model, const std::string& source, bool byte_words) {
  static std::atomic<uint64_t> serials{0};
  serial_ = ++serials;
  const std::string where = source + ": model";
  check_kind(model, where);
  prefix_ = string_or_empty(model, "continuing_subword_prefix", where);
  suffix_ = string_or_empty(model, "end_of_word_suffix", where);
  ignore_merges_ = read_bool(model, "ignore_merges", false, where);
  byte_fallback_ = read_bool(model, "byte_fallback", false, where);
  read_vocabulary(member(model, "vocab", where), where + ".vocab");
  takes_bytes_ =
      byte_words && prefix_.empty() && suffix_.empty() &&
      std::find(byte_tokens_.begin(), byte_tokens_.end(), kNoToken) == byte_tokens_.end();
  if (takes_bytes_ && ignore_merges_) {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (auto bytes = bytes_of_alphabet(tokens_[i].text)) {
        by_bytes_.emplace(std::move(*bytes), static_cast<int32_t>(i));
      }
    }
  }
  read_merges(member(model, "merges", where), where + ".merges");
  read_unknown(model, where);
}

void Bpe::read_vocabulary(const Json& vocabulary, const std::string& where) {
  if (!vocabulary.is_object()) throw input_error(where + ": expected an object");
  const JsonObject& members = vocabulary.as_object();
  tokens_.reserve(members.size());
  for (const auto& [text, id] : members) {
    tokens_.push_back({read_id(id, where + "." + quoted(text)), text});
  }
  by_text_.reserve(tokens_.size());
  for (size_t i = 0; i < tokens_.size(); ++i) {
    by_text_.emplace(tokens_[i].text, static_cast<int32_t>(i));
  }
  character_tokens_.assign(kTableCharacters, kNoToken);
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const Utf8Char c = decode_utf8(tokens_[i].text);
    if (c.length == tokens_[i].text.size() && c.code < kTableCharacters && c.length > 0) {
      character_tokens_[c.code] = static_cast<int32_t>(i);
    }
  }
  for (int byte = 0; byte < 256; ++byte) {
    byte_tokens_[byte] = find(alphabet_character(static_cast<uint8_t>(byte))).value_or(kNoToken);
    std::array<char, 8> name{};
    std::snprintf(name.data(), name.size(), "<0x%02X>", static_cast<unsigned>(byte));
    fallback_tokens_[byte] = find(name.data()).value_or(kNoToken);
  }
}

void Bpe::read_unknown(const Json& model, const std::string& where) {
  fuse_unknown_ = read_bool(model, "fuse_unk", false, where);
  const Json& unknown = member_or_null(model, "unk_token");
  if (unknown.is_null()) return;
  const std::string& text = read_string(model, "unk_token", where);
  // A vocabulary that lacks it is no fault until it is needed: never where every byte has a token.
  if (const auto found = find(text)) {
    unknown_ = *found;
  } else if (!takes_bytes_) {
    throw input_error(where + ".unk_token: " + quoted(text) + " is not in vocab");
  }
}

std::optional<int32_t> Bpe::find(std::string_view text) const {
  const auto found = by_text_.find(text);
  return found == by_text_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<int32_t> Bpe::id_of(std::string_view text) const {
  const auto found = find(text);
  return found ? std::optional(tokens_[*found].id) : std::nullopt;
}

int32_t Bpe::index_of(std::string_view text, const std::string& where) const {
  const auto found = find(text);
  if (!found) throw input_error(where + ": no token " + quoted(text) + " in vocab");
  return *found;
}

void Bpe::read_merges(const Json& merges, const std::string& where) {
  if (!merges.is_array()) throw input_error(where + ": expected an array");
  const JsonArray& list = merges.as_array();
  const bool cut = !takes_bytes_ && !ignore_merges_ && prefix_.empty() && suffix_.empty();
  if (cut) neighbours_.assign(kNeighbourBits, false);
  merges_.assign(std::bit_ceil(2 * list.size() + 2), {UINT64_MAX, 0, 0});
  for (size_t rank = 0; rank < list.size(); ++rank) {
    const std::string at = where + "[" + std::to_string(rank) + "]";
    const auto [left, right] = read_pair(list[rank], at);
    const int32_t left_token = index_of(left, at), right_token = index_of(right, at);
    if (right.size() < prefix_.size()) {
      throw input_error(at + ": " + quoted(right) + " is shorter than continuing_subword_prefix");
    }
    const int32_t joined = index_of(std::string(left) += right.substr(prefix_.size()), at);
    add_merge(left_token, right_token, static_cast<int32_t>(rank), joined);
    if (cut) note_pairs(tokens_[joined].text);
  }
}

}  // namespace hearth
