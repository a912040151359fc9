#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "data/tokenizer/bpe.h"
#include "data/tokenizer/word_cache.h"

namespace hearth {
namespace {

constexpr int32_t kNone = -1;
constexpr uint64_t kNoPair = UINT64_MAX;
constexpr int32_t kNoRank = INT32_MAX;
constexpr size_t kShort = 40;  // symbols up to which a scan beats a heap

uint64_t pair_of(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

size_t slot_of(uint64_t pair, size_t slots) {
  const uint64_t mixed = pair * 0x9e3779b97f4a7c15;
  return static_cast<size_t>(mixed >> 32) & (slots - 1);
}

// Heap order: the top has the lowest rank, among equals the leftmost pair.
constexpr auto comes_later = [](const auto& a, const auto& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
};

}  // namespace

// Space that encoding needs; one a thread.
struct Bpe::Scratch {
  std::vector<Symbol> symbols;
  std::vector<Candidate> candidates;
  WordCache cache;
};

void Bpe::add_merge(int32_t left, int32_t right, int32_t rank, int32_t joined) {
  const uint64_t pair = pair_of(left, right);
  size_t at = slot_of(pair, merges_.size());
  while (merges_[at].pair != kNoPair && merges_[at].pair != pair) {
    at = (at + 1) & (merges_.size() - 1);
  }
  merges_[at] = {pair, rank, joined};  // the last of equal pairs counts
}

const Bpe::Merge* Bpe::merge_of(int32_t left, int32_t right) const {
  const uint64_t pair = pair_of(left, right);
  for (size_t at = slot_of(pair, merges_.size());; at = (at + 1) & (merges_.size() - 1)) {
    if (merges_[at].pair == pair) return &merges_[at];
    if (merges_[at].pair == kNoPair) return nullptr;
  }
}

void Bpe::note_pairs(std::string_view token) {
  Utf8Char left = decode_utf8(token);
  for (size_t at = left.length; at < token.size();) {
    const Utf8Char right = decode_utf8(token.substr(at));
    neighbours_[slot_of(pair_of(static_cast<int32_t>(left.code), static_cast<int32_t>(right.code)),
                        neighbours_.size())] = true;
    left = right;
    at += right.length;
  }
}

bool Bpe::may_merge(uint32_t left, uint32_t right) const {
  return neighbours_[slot_of(pair_of(static_cast<int32_t>(left), static_cast<int32_t>(right)),
                             neighbours_.size())];
}

int32_t Bpe::token_of(uint32_t code, std::string_view character) const {
  if (code < character_tokens_.size()) return character_tokens_[code];
  return find(character).value_or(kNone);
}

// Where nothing was cut into words before (Mixtral), the whole text is one: it is cut here, between
// two characters that have tokens (so that no unknown ones are parted) and never merge.
void Bpe::encode(std::string_view word, uint32_t offset, Encoding& out) const {
  if (neighbours_.empty() || word.size() <= WordCache::kLongestWord) {
    return encode_piece(word, offset, out);
  }
  uint32_t begin = 0;
  uint32_t left = 0;
  bool left_known = false;
  Utf8Char c;
  for (uint32_t at = 0; at < word.size(); at += static_cast<uint32_t>(c.length)) {
    c = decode_utf8(word.substr(at));
    const bool known = token_of(c.code, word.substr(at, c.length)) != kNone;
    if (left_known && known && !may_merge(left, c.code)) {
      encode_piece(word.substr(begin, at - begin), offset + begin, out);
      begin = at;
    }
    left = c.code;
    left_known = known;
  }
  encode_piece(word.substr(begin), offset + begin, out);
}

void Bpe::encode_piece(std::string_view word, uint32_t offset, Encoding& out) const {
  thread_local Scratch scratch;
  if (word.empty()) return;
  const bool cached = word.size() <= WordCache::kLongestWord;
  WordCache::Entry* entry = nullptr;
  if (cached) {
    scratch.cache.belong_to(serial_);
    entry = &scratch.cache.slot(word);
    if (WordCache::holds(*entry, word)) {
      for (size_t i = 0; i < entry->count; ++i) {
        out.ids.push_back(entry->ids[i]);
        out.spans.push_back({offset + entry->begins[i], offset + entry->ends[i]});
      }
      return;
    }
  }
  encode_uncached(word, scratch);
  const size_t first = out.ids.size();
  for (const Symbol& symbol : scratch.symbols) {
    if (symbol.token == kNone) continue;
    out.ids.push_back(tokens_[symbol.token].id);
    out.spans.push_back({offset + symbol.begin, offset + symbol.end});
  }
  const size_t count = out.ids.size() - first;
  if (!cached || count > WordCache::kMostIds) return;
  entry->length = static_cast<uint8_t>(word.size());
  entry->count = static_cast<uint8_t>(count);
  std::copy(word.begin(), word.end(), entry->word.begin());
  for (size_t i = 0; i < count; ++i) {
    entry->ids[i] = out.ids[first + i];
    entry->begins[i] = static_cast<uint8_t>(out.spans[first + i].begin - offset);
    entry->ends[i] = static_cast<uint8_t>(out.spans[first + i].end - offset);
  }
}

// Leaves the tokens of the word in the scratch's symbols, in order; those merged away have no token.
void Bpe::encode_uncached(std::string_view word, Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  symbols.clear();
  const auto size = static_cast<uint32_t>(word.size());
  if (ignore_merges_) {
    std::optional<int32_t> whole;
    if (takes_bytes_) {
      const auto found = by_bytes_.find(std::string(word));
      if (found != by_bytes_.end()) whole = found->second;
    } else {
      whole = find(word);
    }
    if (whole) return symbols.push_back({*whole, kNone, kNone, 0, size});
  }
  if (takes_bytes_) {
    for (uint32_t i = 0; i < size; ++i) {
      symbols.push_back({byte_tokens_[static_cast<uint8_t>(word[i])], 0, 0, i, i + 1});
    }
  } else {
    start_from_characters(word, symbols);
  }
  if (symbols.size() <= kShort) {
    merge_short(symbols, scratch.candidates);
  } else {
    merge_long(symbols, scratch.candidates);
  }
}

void Bpe::start_from_characters(std::string_view word, std::vector<Symbol>& symbols) const {
  // An unknown token waits for what follows, which may be fused with it. As in the official
  // library, the bytes of a character do not end the wait.
  std::optional<Symbol> unknown;
  const auto add = [&](int32_t token, uint32_t begin, uint32_t end) {
    symbols.push_back({token, 0, 0, begin, end});
  };
  const auto add_unknown = [&] {
    if (unknown) symbols.push_back(*unknown);
    unknown.reset();
  };
  std::string decorated;
  for (uint32_t begin = 0, end = 0; begin < word.size(); begin = end) {
    const Utf8Char c = decode_utf8(word.substr(begin));
    end = begin + static_cast<uint32_t>(c.length);
    std::string_view character = word.substr(begin, end - begin);
    const bool inner = begin > 0 && !prefix_.empty();
    const bool last = end == word.size() && !suffix_.empty();
    const bool plain = !inner && !last;
    if (!plain) {
      decorated.assign(inner ? prefix_ : "").append(character).append(last ? suffix_ : "");
      character = decorated;
    }
    const int32_t token = plain ? token_of(c.code, character) : find(character).value_or(kNone);
    if (token != kNone) {
      add_unknown();
      add(token, begin, end);
      continue;
    }
    const auto has_token = [&](char byte) {
      return fallback_tokens_[static_cast<uint8_t>(byte)] != kNone;
    };
    if (byte_fallback_ && std::all_of(character.begin(), character.end(), has_token)) {
      for (uint32_t i = 0; i < character.size(); ++i) {
        // With a prefix or a suffix, every byte stands for the whole character.
        add(fallback_tokens_[static_cast<uint8_t>(character[i])], plain ? begin + i : begin,
            plain ? begin + i + 1 : end);
      }
    } else if (unknown_ != kNone) {
      if (unknown && fuse_unknown_) {
        unknown->end = end;
      } else {
        add_unknown();
        unknown = {unknown_, 0, 0, begin, end};
      }
    }
  }
  add_unknown();
}

// Scans for the lowest rank until there is no merge; pairs[i] is that of symbols i and i + 1.
void Bpe::merge_short(std::vector<Symbol>& symbols, std::vector<Candidate>& pairs) const {
  pairs.clear();
  const auto candidate = [&](size_t left) -> Candidate {
    const Merge* merge = merge_of(symbols[left].token, symbols[left + 1].token);
    return merge == nullptr ? Candidate{kNoRank, 0, 0} : Candidate{merge->rank, 0, merge->token};
  };
  for (size_t i = 0; i + 1 < symbols.size(); ++i) pairs.push_back(candidate(i));
  while (!pairs.empty()) {
    const auto best =
        std::min_element(pairs.begin(), pairs.end(),
                         [](const Candidate& a, const Candidate& b) { return a.rank < b.rank; });
    if (best->rank == kNoRank) return;
    const auto at = static_cast<size_t>(best - pairs.begin());
    symbols[at].token = best->token;
    symbols[at].end = symbols[at + 1].end;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    pairs.erase(best);
    if (at > 0) pairs[at - 1] = candidate(at - 1);
    if (at < pairs.size()) pairs[at] = candidate(at);
  }
}

// A heap of pairs over a linked list: what became of a pair meanwhile is seen when it comes up.
void Bpe::merge_long(std::vector<Symbol>& symbols, std::vector<Candidate>& heap) const {
  heap.clear();
  for (size_t i = 0; i < symbols.size(); ++i) {
    symbols[i].previous = static_cast<int32_t>(i) - 1;
    symbols[i].next = static_cast<int32_t>(i) + 1;
  }
  symbols.back().next = kNone;
  const auto add = [&](int32_t left) {
    if (left == kNone || symbols[left].next == kNone) return false;
    const Merge* merge = merge_of(symbols[left].token, symbols[symbols[left].next].token);
    if (merge == nullptr) return false;
    heap.push_back({merge->rank, left, merge->token});
    return true;
  };
  for (size_t i = 0; i < symbols.size(); ++i) add(static_cast<int32_t>(i));
  std::make_heap(heap.begin(), heap.end(), comes_later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), comes_later);
    const Candidate candidate = heap.back();
    heap.pop_back();
    Symbol& left = symbols[candidate.left];
    if (left.token == kNone || left.next == kNone) continue;  // merged away meanwhile
    Symbol& right = symbols[left.next];
    const Merge* merge = merge_of(left.token, right.token);
    if (merge == nullptr || merge->token != candidate.token) continue;  // another pair meanwhile
    left.token = candidate.token;
    left.end = right.end;
    left.next = right.next;
    right.token = kNone;
    if (left.next != kNone) symbols[left.next].previous = candidate.left;
    if (add(left.previous)) std::push_heap(heap.begin(), heap.end(), comes_later);
    if (add(candidate.left)) std::push_heap(heap.begin(), heap.end(), comes_later);
  }
}

}  // namespace hearth
