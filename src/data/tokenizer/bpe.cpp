#include "data/tokenizer/bpe.h"

#include <algorithm>

#include "base/error.h"
#include "data/json_fields.h"
#include "data/tokenizer/byte_alphabet.h"

namespace hearth {
namespace {

constexpr int32_t kNone = -1;

bool is_null_or_empty(const Json& value) {
  return value.is_null() || (value.is_string() && value.as_string().empty());
}

void check_settings(const Json& model, const std::string& where) {
  allow_keys(model, where,
             {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
              "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (read_string(model, "type", where) != "BPE") {
    refuse_value(where + ".type", member(model, "type", where));
  }
  const Json& dropout = member_or_null(model, "dropout");
  if (!dropout.is_null() && !(dropout.is_number() && dropout.as_double() == 0)) {
    refuse_value(where + ".dropout", dropout);
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const Json& value = member_or_null(model, key);
    if (!is_null_or_empty(value)) refuse_value(where + "." + key, value);
  }
  if (read_bool(model, "byte_fallback", false, where)) {
    refuse_value(where + ".byte_fallback", Json(true));
  }
  read_bool(model, "fuse_unk", false, where);  // of no consequence without unknown tokens
}

// Heap order: the top has the lowest rank, among equals the leftmost pair.
bool comes_later(const Bpe::Scratch::Candidate& a, const Bpe::Scratch::Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
}

}  // namespace

Bpe::Bpe(const Json& model, const std::string& source) {
  const std::string where = source + ": model";
  check_settings(model, where);
  ignore_merges_ = read_bool(model, "ignore_merges", false, where);
  read_vocabulary(member(model, "vocab", where), where + ".vocab");
  read_merges(member(model, "merges", where), where + ".merges");
  // An unknown token is met only where a byte has none.
  const Json& unknown = member_or_null(model, "unk_token");
  const bool complete =
      std::find(byte_tokens_.begin(), byte_tokens_.end(), kNone) == byte_tokens_.end();
  if (!unknown.is_null() && !complete) refuse_value(where + ".unk_token", unknown);
}

void Bpe::read_vocabulary(const Json& vocabulary, const std::string& where) {
  if (!vocabulary.is_object()) throw input_error(where + ": an object expected");
  const JsonObject& members = vocabulary.as_object();
  tokens_.reserve(members.size());
  for (const auto& [text, id] : members) {
    tokens_.push_back(
        {read_id(id, where + "." + quoted(text)), text, bytes_of_alphabet(text).value_or(text)});
  }
  by_text_.reserve(tokens_.size());
  if (ignore_merges_) by_bytes_.reserve(tokens_.size());
  for (size_t i = 0; i < tokens_.size(); ++i) {
    by_text_.emplace(tokens_[i].text, static_cast<int32_t>(i));
    if (ignore_merges_ && bytes_of_alphabet(tokens_[i].text)) {
      by_bytes_.emplace(tokens_[i].bytes, static_cast<int32_t>(i));
    }
  }
  byte_tokens_.resize(256, kNone);
  for (int byte = 0; byte < 256; ++byte) {
    const auto found = by_text_.find(alphabet_character(static_cast<uint8_t>(byte)));
    if (found != by_text_.end()) byte_tokens_[byte] = found->second;
  }
}

int32_t Bpe::index_of(std::string_view text, const std::string& where) const {
  const auto found = by_text_.find(text);
  if (found == by_text_.end())
    throw input_error(where + ": no token " + quoted(text) + " in vocab");
  return found->second;
}

void Bpe::read_merges(const Json& merges, const std::string& where) {
  if (!merges.is_array()) throw input_error(where + ": an array expected");
  const JsonArray& list = merges.as_array();
  struct Entry {
    int32_t left;
    Merge merge;
  };
  std::vector<Entry> entries;
  entries.reserve(list.size());
  for (size_t rank = 0; rank < list.size(); ++rank) {
    const Json& item = list[rank];
    const std::string at = where + "[" + std::to_string(rank) + "]";
    std::string_view left, right;
    if (item.is_string()) {
      const std::string_view both = item.as_string();
      const size_t space = both.find(' ');
      if (space == std::string_view::npos || both.find(' ', space + 1) != std::string_view::npos) {
        throw input_error(at + ": two tokens and one space expected, not " + quoted(both));
      }
      left = both.substr(0, space);
      right = both.substr(space + 1);
    } else if (item.is_array() && item.as_array().size() == 2 && item.as_array()[0].is_string() &&
               item.as_array()[1].is_string()) {
      left = item.as_array()[0].as_string();
      right = item.as_array()[1].as_string();
    } else {
      throw input_error(at + ": a string or a pair of strings expected");
    }
    const int32_t left_token = index_of(left, at);
    const int32_t right_token = index_of(right, at);
    const int32_t joined = index_of(std::string(left) += right, at);
    entries.push_back({left_token, {right_token, static_cast<int32_t>(rank), joined}});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    if (a.left != b.left) return a.left < b.left;
    if (a.merge.right != b.merge.right) return a.merge.right < b.merge.right;
    return a.merge.rank > b.merge.rank;  // the last of equal pairs counts: found first
  });
  merge_offsets_.assign(tokens_.size() + 1, 0);
  merges_.reserve(entries.size());
  for (const Entry& entry : entries) {
    ++merge_offsets_[entry.left + 1];
    merges_.push_back(entry.merge);
  }
  for (size_t i = 1; i < merge_offsets_.size(); ++i) merge_offsets_[i] += merge_offsets_[i - 1];
}

std::optional<int32_t> Bpe::id_of(std::string_view text) const {
  const auto found = by_text_.find(text);
  if (found == by_text_.end()) return std::nullopt;
  return tokens_[found->second].id;
}

const Bpe::Merge* Bpe::merge_of(int32_t left, int32_t right) const {
  const auto begin = merges_.begin() + merge_offsets_[left];
  const auto end = merges_.begin() + merge_offsets_[left + 1];
  const auto found = std::lower_bound(
      begin, end, right, [](const Merge& merge, int32_t token) { return merge.right < token; });
  return found != end && found->right == right ? &*found : nullptr;
}

// The pair of a symbol and the next one, if there is a merge of it.
void Bpe::add_candidate(int32_t left, Scratch& scratch) const {
  const auto& symbols = scratch.symbols;
  if (left == kNone || symbols[left].next == kNone) return;
  const Merge* merge = merge_of(symbols[left].token, symbols[symbols[left].next].token);
  if (merge == nullptr) return;
  scratch.heap.push_back({merge->rank, left, merge->token});
}

void Bpe::encode(std::string_view word, uint32_t offset, Encoding& out, Scratch& scratch) const {
  if (ignore_merges_) {
    if (const auto found = by_bytes_.find(word); found != by_bytes_.end()) {
      out.ids.push_back(tokens_[found->second].id);
      out.spans.push_back({offset, offset + static_cast<uint32_t>(word.size())});
      return;
    }
  }
  auto& symbols = scratch.symbols;
  auto& heap = scratch.heap;
  symbols.clear();
  heap.clear();
  for (size_t i = 0; i < word.size(); ++i) {
    const int32_t token = byte_tokens_[static_cast<uint8_t>(word[i])];
    if (token == kNone) continue;
    const auto at = static_cast<int32_t>(symbols.size());
    symbols.push_back(
        {token, at - 1, at + 1, static_cast<uint32_t>(i), static_cast<uint32_t>(i + 1)});
  }
  if (symbols.empty()) return;
  symbols.back().next = kNone;

  for (size_t i = 0; i < symbols.size(); ++i) add_candidate(static_cast<int32_t>(i), scratch);
  std::make_heap(heap.begin(), heap.end(), comes_later);
  const auto add = [&](int32_t left) {
    const size_t before = heap.size();
    add_candidate(left, scratch);
    if (heap.size() > before) std::push_heap(heap.begin(), heap.end(), comes_later);
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), comes_later);
    const auto candidate = heap.back();
    heap.pop_back();
    auto& left = symbols[candidate.left];
    if (left.token == kNone || left.next == kNone) continue;  // merged away meanwhile
    auto& right = symbols[left.next];
    const Merge* merge = merge_of(left.token, right.token);
    if (merge == nullptr || merge->token != candidate.token) continue;  // another pair meanwhile
    left.token = candidate.token;
    left.end = right.end;
    left.next = right.next;
    right.token = kNone;
    if (left.next != kNone) symbols[left.next].previous = candidate.left;
    add(left.previous);
    add(candidate.left);
  }
  for (int32_t at = 0; at != kNone; at = symbols[at].next) {
    out.ids.push_back(tokens_[symbols[at].token].id);
    out.spans.push_back({offset + symbols[at].begin, offset + symbols[at].end});
  }
}

}  // namespace hearth
