// Spans of tokens in the original text, through everything that changes the text.
#include <catch2/catch_test_macros.hpp>

#include "data/tokenizer/aligned_text.h"
#include "data/tokenizer/tokenizer.h"

using namespace hearth;

namespace {

using Pieces = std::vector<std::pair<std::string, std::string>>;  // token, its part of the text

// One token a character of what comes out, and merges.
Tokenizer tokenizer(const char* normalizer, const char* pre_tokenizer,
                    std::initializer_list<const char*> tokens,
                    std::initializer_list<const char*> merges = {}) {
  Json json = parse_json(R"({"model": {"type": "BPE", "vocab": {}, "merges": []}})", "spans");
  json["normalizer"] = parse_json(normalizer, "normalizer");
  json["pre_tokenizer"] = parse_json(pre_tokenizer, "pre_tokenizer");
  JsonObject vocabulary;
  for (const char* token : tokens) {
    vocabulary.emplace_back(token, static_cast<int64_t>(vocabulary.size()));
  }
  json["model"]["vocab"] = vocabulary;
  JsonArray list;
  for (const char* merge : merges) list.emplace_back(merge);
  json["model"]["merges"] = list;
  return Tokenizer(json, Json(), "spans");
}

Pieces pieces(const Tokenizer& tokenizer, const std::string& text) {
  const Encoding encoding = tokenizer.encode(text);
  Pieces result;
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    const TextSpan span = encoding.spans[i];
    result.emplace_back(*tokenizer.token(encoding.ids[i]),
                        text.substr(span.begin, span.end - span.begin));
  }
  return result;
}

}  // namespace

TEST_CASE("edits map back, one behind the other") {
  AlignedText text("one two");
  TextEdit first(text.text());
  first.replace({0, 1}, "_o");   // "_one two"
  first.replace({3, 4}, "___");  // "_one___two"
  text.apply(std::move(first));
  CHECK(text.text() == "_one___two");
  CHECK(text.original({0, 1}) == TextSpan{0, 1});
  CHECK(text.original({1, 4}) == TextSpan{0, 3});
  CHECK(text.original({2, 4}) == TextSpan{1, 3});
  CHECK(text.original({5, 6}) == TextSpan{3, 4});
  CHECK(text.original({7, 10}) == TextSpan{4, 7});
  TextEdit second(text.text());
  second.replace({4, 7}, "");  // "_onetwo"
  second.replace({7, 8}, "T");
  text.apply(std::move(second));
  CHECK(text.text() == "_oneTwo");
  CHECK(text.original({4, 5}) == TextSpan{4, 5});
  CHECK(text.original({3, 5}) == TextSpan{2, 5});
  CHECK(text.original({6, 7}) == TextSpan{6, 7});
  text.keep({4, 6});
  CHECK(text.text() == "Tw");
  CHECK(text.original({0, 1}) == TextSpan{4, 5});
  CHECK(text.original({0, 2}) == TextSpan{4, 6});
}

TEST_CASE("a prefix belongs to the first character, a mark to its space") {
  const char* marks = R"({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
      {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]})";
  const Pieces expected = {{"▁a", "a"}, {"é", "é"}, {"▁", " "}, {"▁b", " b"}};
  CHECK(pieces(tokenizer(marks, "null", {"▁", "a", "é", "b", "▁a", "▁b"}, {"▁ a", "▁ b"}),
               "aé  b") == expected);
  CHECK(pieces(tokenizer("null", R"({"type": "Metaspace", "replacement": "▁"})",
                         {"▁", "a", "é", "b", "▁a", "▁b"}, {"▁ a", "▁ b"}),
               "aé  b") == expected);
  // The prefix alone stands where the character does: it is trained with it.
  CHECK(pieces(tokenizer(marks, "null", {"▁", "c"}), "c") == Pieces{{"▁", "c"}, {"c", "c"}});
}

TEST_CASE("compatible forms, case and stripping") {
  const char* all = R"({"type": "Sequence", "normalizers": [
      {"type": "Strip", "strip_left": true, "strip_right": true}, {"type": "NFKC"},
      {"type": "Lowercase"}, {"type": "Replace", "pattern": {"Regex": "b+"}, "content": "x"}]})";
  const Tokenizer with = tokenizer(all, "null", {"f", "i", "a", "x", "i\u0307", "å"});
  CHECK(pieces(with, " \tﬁA bbB Å　") ==
        Pieces{{"f", "ﬁ"}, {"i", "ﬁ"}, {"a", "A"}, {"x", "bbB"}, {"å", "Å"}});
  CHECK(pieces(with, "A\u030aA") == Pieces{{"å", "A\u030a"}, {"a", "A"}});
}

TEST_CASE("words that were removed leave gaps, bytes are parts of characters") {
  CHECK(pieces(tokenizer("null", R"({"type": "WhitespaceSplit"})", {"a", "b"}), " a  b ") ==
        Pieces{{"a", "a"}, {"b", "b"}});
  const char* bytes = R"({"type": "Sequence", "pretokenizers": [
      {"type": "ByteLevel", "add_prefix_space": true, "use_regex": false},
      {"type": "Digits", "individual_digits": true}]})";
  CHECK(pieces(tokenizer("null", bytes, {"Ġ", "a", "Ã", "©", "7"}), "aé7") ==
        Pieces{{"Ġ", "a"}, {"a", "a"}, {"Ã", "\xc3"}, {"©", "\xa9"}, {"7", "7"}});
}

TEST_CASE("what the post-processor adds stands at the ends") {
  Json json = parse_json(R"({"model": {"type": "BPE", "vocab": {"<s>": 0, "a": 1}, "merges": []},
    "post_processor": {"type": "BertProcessing", "cls": ["<s>", 0], "sep": ["<s>", 0]}})",
                         "ends");
  const Tokenizer with(json, Json(), "ends");
  const Encoding encoding = with.encode("aa", {.add_special = true});
  CHECK(encoding.ids == std::vector<int32_t>{0, 1, 1, 0});
  CHECK(encoding.spans == std::vector<TextSpan>{{0, 0}, {0, 1}, {1, 2}, {2, 2}});
  CHECK(with.encode("aa").ids == std::vector<int32_t>{1, 1});
}
