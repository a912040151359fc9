#include "data/tokenizer/added_tokens.h"

#include <set>

#include "base/error.h"
#include "data/json_fields.h"

namespace hearth {
namespace {

uint64_t edge(uint32_t node, char byte) { return uint64_t{node} << 8 | static_cast<uint8_t>(byte); }

AddedToken read_token(const Json& entry, const std::string& where) {
  allow_keys(entry, where,
             {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  AddedToken token;
  token.id = read_id(member(entry, "id", where), where + ".id");
  token.content = read_string(entry, "content", where);
  if (token.content.empty()) throw input_error(where + ".content is empty");
  token.special = read_bool(entry, "special", false, where);
  for (const char* key : {"single_word", "lstrip", "rstrip", "normalized"}) {
    if (read_bool(entry, key, false, where)) {
      throw input_error(where + " (" + quoted(token.content) + "): " + key +
                        " = true is not supported by this version");
    }
  }
  return token;
}

}  // namespace

AddedTokens::AddedTokens(const Json& list, const std::string& source) {
  if (list.is_null()) return;
  const std::string where = source + ": added_tokens";
  if (!list.is_array()) throw input_error(where + ": an array expected");
  std::set<std::string> contents;
  std::set<int32_t> ids;
  for (const Json& entry : list.as_array()) {
    const std::string at = where + "[" + std::to_string(tokens_.size()) + "]";
    tokens_.push_back(read_token(entry, at));
    const AddedToken& token = tokens_.back();
    if (!contents.insert(token.content).second || !ids.insert(token.id).second) {
      throw input_error(at + ": the content " + quoted(token.content) + " or the id " +
                        std::to_string(token.id) + " comes twice");
    }
    insert(token);
  }
}

void AddedTokens::insert(const AddedToken& token) {
  begins_[static_cast<uint8_t>(token.content[0])] = true;
  uint32_t node = 0;
  for (const char byte : token.content) {
    const auto [child, fresh] =
        children_.try_emplace(edge(node, byte), static_cast<uint32_t>(ends_.size()));
    if (fresh) ends_.push_back(-1);
    node = child->second;
  }
  ends_[node] = token.id;
}

std::optional<AddedTokens::Match> AddedTokens::find(std::string_view text, size_t start) const {
  for (size_t begin = start; begin < text.size(); ++begin) {
    if (!begins_[static_cast<uint8_t>(text[begin])]) continue;
    std::optional<Match> longest;
    uint32_t node = 0;
    for (size_t at = begin; at < text.size(); ++at) {
      const auto child = children_.find(edge(node, text[at]));
      if (child == children_.end()) break;
      node = child->second;
      if (ends_[node] >= 0) {
        longest = {{static_cast<uint32_t>(begin), static_cast<uint32_t>(at + 1)}, ends_[node]};
      }
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

}  // namespace hearth
