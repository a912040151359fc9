// Words: which merge counts, what the cache of words keeps apart, words of any length.
#include <catch2/catch_test_macros.hpp>

#include "base/file_ops.h"
#include "base/random.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/word_cache.h"
#include "support/temporary_directory.h"

using namespace hearth;

namespace {

// A tokenizer.json: letters a to h, and merges of two tokens each, in order of rank.
Json file_with(const std::vector<std::pair<std::string, std::string>>& merges) {
  Json json = parse_json(R"({"model": {"type": "BPE"}})", "words");
  JsonObject vocabulary;
  const auto add = [&](const std::string& token) {
    for (const auto& [known, id] : vocabulary) {
      if (known == token) return;
    }
    vocabulary.emplace_back(token, static_cast<int64_t>(vocabulary.size()));
  };
  JsonArray list;
  for (char letter = 'a'; letter <= 'h'; ++letter) add(std::string(1, letter));
  for (const auto& [left, right] : merges) {
    add(left + right);
    list.push_back(JsonArray{left, right});
  }
  json["model"]["vocab"] = vocabulary;
  json["model"]["merges"] = list;
  return json;
}

Tokenizer with_merges(const std::vector<std::pair<std::string, std::string>>& merges) {
  return Tokenizer(file_with(merges), Json(), "words");
}

std::string joined(const Tokenizer& tokenizer, std::string_view word) {
  std::string text;
  for (const int32_t id : tokenizer.encode(word).ids) {
    text += (text.empty() ? "" : " ") + std::string(*tokenizer.token(id));
  }
  return text;
}

}  // namespace

TEST_CASE("the lowest rank first, the leftmost of equal ones, the last of equal pairs") {
  CHECK(joined(with_merges({{"b", "c"}, {"a", "b"}}), "abc") == "a bc");
  CHECK(joined(with_merges({{"a", "b"}, {"b", "c"}}), "abc") == "ab c");
  CHECK(joined(with_merges({{"a", "a"}}), "aaaaa") == "aa aa a");
  const test::TemporaryDirectory directory;
  write_file_atomically(directory.path() + "/tokenizer.json",
                        file_with({{"a", "b"}, {"b", "c"}, {"a", "b"}}).dump());
  CHECK(joined(Tokenizer(directory.path()), "abc") == "a bc");
}

TEST_CASE("long words merge as short ones do") {
  // A scan up to some length, a heap above: each half of a long word is what it is alone.
  const Tokenizer tokenizer =
      with_merges({{"a", "b"}, {"c", "d"}, {"ab", "cd"}, {"b", "c"}, {"e", "e"}, {"ee", "ee"}});
  const Random random(7, RandomSite::sample);
  uint64_t draws = 0;
  for (int i = 0; i < 300; ++i) {
    std::string word;
    for (uint64_t n = 1 + random.below(draws++, 30); n > 0; --n) {
      word += static_cast<char>('a' + random.below(draws++, 5));
    }
    const std::string once = joined(tokenizer, word);
    std::string expected = once, repeated = word;  // h merges with nothing
    for (int times = 0; times < 4; ++times) {
      expected += " h " + once;
      repeated += "h" + word;
    }
    CHECK(joined(tokenizer, repeated) == expected);
    CHECK(joined(tokenizer, word) == once);  // from the cache
  }
}

TEST_CASE("a text without words is cut only where nothing merges") {
  // "b h", "h a" meet in no token; "c d" only in one that a merge makes of longer tokens.
  const Tokenizer tokenizer = with_merges({{"b", "c"}, {"d", "e"}, {"bc", "de"}, {"a", "b"}});
  std::string text, expected;
  for (int i = 0; i < 40; ++i) {
    text += "bcdehab";
    expected += std::string(i > 0 ? " " : "") + "bcde h ab";
  }
  CHECK(joined(tokenizer, text) == expected);
  // Unknown characters are nothing here, and part nothing.
  CHECK(joined(tokenizer, text + "\u4e2d" + text) == expected + " " + expected);
}

TEST_CASE("a slot of the cache holds one word, not its beginning") {
  WordCache cache;
  cache.belong_to(1);
  int pairs = 0;
  for (int i = 0; i < 300000 && pairs < 3; ++i) {
    const std::string longer = std::to_string(i) + "x";
    const std::string shorter = longer.substr(0, longer.size() - 1);
    WordCache::Entry& entry = cache.slot(longer);
    if (&entry != &cache.slot(shorter)) continue;
    ++pairs;
    entry.length = static_cast<uint8_t>(longer.size());
    std::copy(longer.begin(), longer.end(), entry.word.begin());
    CHECK(WordCache::holds(entry, longer));
    CHECK_FALSE(WordCache::holds(entry, shorter));
    cache.belong_to(2 + static_cast<uint64_t>(i));  // another model: empty
    CHECK_FALSE(WordCache::holds(cache.slot(longer), longer));
  }
  CHECK(pairs > 0);
}
