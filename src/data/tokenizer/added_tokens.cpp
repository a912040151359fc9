#include "data/tokenizer/added_tokens.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/utf8.h"
#include "data/json_fields.h"
#include "data/tokenizer/unicode_forms.h"

namespace hearth {
namespace {

constexpr size_t kMaxContent = 4096;  // bytes: bounds the time of a search

uint64_t edge(uint32_t node, char byte) { return uint64_t{node} << 8 | static_cast<uint8_t>(byte); }

AddedToken read_token(const Json& entry, const std::string& where) {
  allow_keys(entry, where,
             {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  AddedToken token;
  token.id = read_id(member(entry, "id", where), where + ".id");
  token.content = read_string(entry, "content", where);
  if (token.content.empty()) throw input_error(where + ".content is empty");
  if (token.content.size() > kMaxContent) {
    throw input_error(where + ".content: more than " + std::to_string(kMaxContent) + " bytes");
  }
  token.special = read_bool(entry, "special", false, where);
  token.normalized = read_bool(entry, "normalized", false, where);
  token.single_word = read_bool(entry, "single_word", false, where);
  token.lstrip = read_bool(entry, "lstrip", false, where);
  token.rstrip = read_bool(entry, "rstrip", false, where);
  return token;
}

uint32_t last_character(std::string_view text, uint32_t end) {
  do --end;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80);
  return end;
}

bool beside_word(std::string_view text, TextSpan span) {
  return (span.begin > 0 &&
          is_word(decode_utf8(text.substr(last_character(text, span.begin))).code)) ||
         (span.end < text.size() && is_word(decode_utf8(text.substr(span.end)).code));
}

uint32_t space_before(std::string_view text, uint32_t begin, uint32_t least) {
  while (begin > least) {
    const uint32_t last = last_character(text, begin);
    if (!is_space(decode_utf8(text.substr(last)).code)) break;
    begin = last;
  }
  return begin;
}

uint32_t space_behind(std::string_view text, uint32_t end) {
  while (end < text.size()) {
    const Utf8Char c = decode_utf8(text.substr(end));
    if (!is_space(c.code)) break;
    end += static_cast<uint32_t>(c.length);
  }
  return end;
}

}  // namespace

AddedTokens::AddedTokens(const Json& list, const Bpe& bpe, const Normalizer& normalizer,
                         const std::string& source) {
  if (list.is_null()) return;
  const std::string where = source + ": added_tokens";
  if (!list.is_array()) throw input_error(where + ": expected an array");
  std::set<std::string> contents;
  std::set<int32_t> ids;
  const auto vocabulary = static_cast<int32_t>(bpe.tokens().size());
  int32_t last = -1;
  TextRoom room(source + ": normalizer, of added_tokens", 8);
  for (const Json& entry : list.as_array()) {
    const auto index = static_cast<int32_t>(tokens_.size());
    const std::string at = where + "[" + std::to_string(index) + "]";
    AddedToken token = read_token(entry, at);
    const int32_t due = bpe.id_of(token.content).value_or(std::max(last + 1, vocabulary));
    if (!contents.insert(token.content).second || !ids.insert(token.id).second) {
      throw input_error(at + ": the content " + quoted(token.content) + " or the id " +
                        std::to_string(token.id) + " comes twice");
    }
    if (token.id != due) {
      throw input_error(at + ": the added token " + quoted(token.content) + " has the id " +
                        std::to_string(token.id) + ", but the official library gives it " +
                        std::to_string(due) +
                        " (its own in vocab, or the next after vocab and the added tokens)");
    }
    last = std::max(last, token.id);
    if (token.normalized) {
      room.add_text(token.content.size());
      AlignedText content(token.content, &room);
      normalizer.apply(content);
      if (content.text().empty()) {
        throw input_error(at + ": nothing is left of " + quoted(token.content) +
                          " after normalization");
      }
      if (content.text().size() > kMaxContent) {
        throw input_error(at + ".content: more than " + std::to_string(kMaxContent) +
                          " bytes after normalization");
      }
      token.decoded = content.text();
      normal_.insert(token.decoded, index);
    } else {
      token.decoded = token.content;
      raw_.insert(token.content, index);
    }
    tokens_.push_back(std::move(token));
  }
}

void AddedTokens::Trie::insert(std::string_view content, int32_t token) {
  begins[static_cast<uint8_t>(content[0])] = true;
  uint32_t node = 0;
  for (const char byte : content) {
    const auto [child, fresh] =
        children.try_emplace(edge(node, byte), static_cast<uint32_t>(ends.size()));
    if (fresh) ends.push_back(-1);
    node = child->second;
  }
  if (ends[node] < 0) ends[node] = token;  // of equal normal forms the first one
}

std::vector<AddedTokens::Match> AddedTokens::find(
    std::string_view text, bool normalized,
    const std::function<bool(const AddedToken&, TextSpan)>& as_text) const {
  const Trie& trie = normalized ? normal_ : raw_;
  std::vector<Match> matches;
  if (trie.children.empty()) return matches;
  uint32_t done = 0;
  uint32_t begin = 0;
  while (begin < text.size()) {
    if (!trie.begins[static_cast<uint8_t>(text[begin])]) {
      ++begin;
      continue;
    }
    int32_t longest = -1;
    TextSpan span{begin, begin};
    uint32_t node = 0;
    for (uint32_t at = begin; at < text.size(); ++at) {
      const auto child = trie.children.find(edge(node, text[at]));
      if (child == trie.children.end()) break;
      node = child->second;
      if (trie.ends[node] >= 0) longest = trie.ends[node], span.end = at + 1;
    }
    if (longest < 0) {
      ++begin;
      continue;
    }
    begin = span.end;
    const AddedToken& token = tokens_[longest];
    if (as_text(token, span) || (token.single_word && beside_word(text, span))) continue;
    if (token.lstrip) span.begin = space_before(text, span.begin, std::min(done, span.begin));
    if (token.rstrip) span.end = space_behind(text, span.end);
    matches.push_back({span, &token});
    done = span.end;
  }
  return matches;
}

}  // namespace hearth
