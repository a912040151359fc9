// What tokenizer.json may not hold: each change of a good file is refused with its name and value.
#include "data/tokenizer_file.h"

using namespace hearth;
using namespace hearth::test;

TEST_CASE("the unchanged file is read") {
  const Tokenizer tokenizer(good(), Json(), "dir");
  CHECK(tokenizer.encode("abc<s>aab").ids == std::vector<int32_t>{4, 6, 0, 3});
  CHECK(tokenizer.vocabulary_size() == 9);
  CHECK_FALSE(tokenizer.has_end_token());
  CHECK_THROWS_AS(tokenizer.end_id(), Error);
  CHECK_FALSE(tokenizer.token(7));  // a hole in the ids
  // Bytes without a token give none, as in the official library; spans stay right.
  const Encoding encoding = tokenizer.encode("bxac");
  CHECK(encoding.ids == std::vector<int32_t>{1, 0, 2});
  CHECK(encoding.spans == std::vector<TextSpan>{{0, 1}, {2, 3}, {3, 4}});
}

TEST_CASE("variants that mean the same are read") {
  for (const auto& change : std::vector<std::function<void(Json&)>>{
           [](Json& j) {
             at(j, {"model", "dropout"}) = 0.0;
           },
           [](Json& j) {
             at(j, {"model", "dropout"}) = 0;
           },
           [](Json& j) { at(j, {"normalizer"}) = nullptr; },
           [](Json& j) { at(j, {"post_processor"}) = nullptr; },
           [](Json& j) { at(j, {"truncation"}) = parse_json("{\"max_length\": 2}", ""); },
           [](Json& j) {
             at(j, {"model", "fuse_unk"}) = true;
           },
           [](Json& j) {
             j["pre_tokenizer"] = at(j, {"pre_tokenizer", "pretokenizers", "1"});
           }}) {
    Json json = good();
    change(json);
    CHECK(Tokenizer(json, Json(), "dir").encode("abc").ids == std::vector<int32_t>{4});
  }
  Json json = good();
  json["model"]["ignore_merges"] = true;
  json["model"]["merges"] = JsonArray{};
  const Tokenizer whole(json, Json(), "dir");
  CHECK(whole.encode("abc").ids == std::vector<int32_t>{4});
  CHECK(whole.encode("abca").ids == std::vector<int32_t>{0, 1, 2, 0});
}

TEST_CASE("other components and settings are refused by name and value") {
  const auto component = [](const char* json) { return parse_json(json, "component"); };
  refused({"normalizer", "type"}, "Precompiled", {"normalizer.type", "'Precompiled'"});
  refused({"normalizer"}, "NFC", {"normalizer"});
  refused({"normalizer", "type"}, 5, {"normalizer.type", "'5'"});
  refused({"normalizer", "x"}, 1, {"normalizer", "'x'", "'1'"});
  refused({"normalizer"}, component(R"({"type": "Sequence", "normalizers": [{"type": "Q"}]})"),
          {"normalizer.normalizers[0].type", "'Q'"});
  refused({"normalizer"}, component(R"({"type": "Replace", "pattern": {"S": ""}, "content": ""})"),
          {"normalizer.pattern", "'S'"});
  refused({"normalizer"}, component(R"({"type": "Strip", "strip_left": true})"), {"strip_right"});
  refused({"pre_tokenizer", "type"}, "Sequences", {"pre_tokenizer.type", "'Sequences'"});
  refused({"pre_tokenizer", "pretokenizers", "0", "type"}, "UnicodeScripts",
          {"pretokenizers[0].type", "'UnicodeScripts'"});
  refused({"pre_tokenizer", "pretokenizers", "0", "behavior"}, "removed",
          {"behavior", "'removed'"});
  refused({"pre_tokenizer", "pretokenizers", "0", "invert"}, 1, {"invert", "'1'"});
  refused({"pre_tokenizer", "pretokenizers", "1", "add_space"}, true, {"'add_space'", "'true'"});
  refused({"pre_tokenizer", "pretokenizers"}, 1, {"pretokenizers", "'1'"});
  refused({"pre_tokenizer"}, component(R"({"type": "Metaspace", "replacement": "__"})"),
          {"replacement", "'__'"});
  refused({"pre_tokenizer"},
          component(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "last"})"),
          {"prepend_scheme", "'last'"});
  refused({"post_processor", "type"}, "Other", {"post_processor.type", "'Other'"});
  refused({"post_processor"}, component(R"({"type": "TemplateProcessing", "special_tokens": {},
          "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}], "pair": []})"),
          {"special_tokens", "'<s>'"});
  refused({"post_processor"},
          component(R"({"type": "TemplateProcessing", "special_tokens": {}, "single": []})"),
          {"single", "0 times"});
  refused({"decoder", "type"}, "CTC", {"decoder.type", "'CTC'"});
  for (const char* type : {"Unigram", "WordPiece", "WordLevel"}) {
    refused({"model", "type"}, type, {"model.type", std::string("'") + type + "'"});
  }
  refused({"model", "dropout"}, 0.1, {"model.dropout", "'0.1'"});
  refused({"model", "unk_token"}, "x", {"unk_token", "'x'"});
  refused({"model", "continuing_subword_prefix"}, "##", {"continuing_subword_prefix"});
  refused({"model", "surprise"}, 1, {"'surprise'"});
  refused({"surprise"}, 1, {"'surprise'"});
  refused({"added_tokens", "0", "sticky"}, true, {"added_tokens[0]", "'sticky'"});
  refused({"added_tokens", "0", "lstrip"}, 1, {"added_tokens[0].lstrip", "'1'"});
}

TEST_CASE("broken vocabularies and merges are refused") {
  refused({"model", "vocab"}, JsonArray{}, {"vocab"});
  refused({"model", "vocab", "a"}, -1, {"vocab.'a'", "'-1'"});
  refused({"model", "vocab", "a"}, int64_t{1} << 31, {"vocab.'a'"});
  refused({"model", "vocab", "a"}, 1.0, {"vocab.'a'"});
  refused({"model", "vocab", "a"}, "0", {"vocab.'a'"});
  refused({"model", "vocab", "a"}, 1, {"'b'", "id 1"});
  refused({"model", "merges"}, nullptr, {"merges"});
  refused({"model", "merges", "0"}, "bc", {"merges[0]"});
  refused({"model", "merges", "0"}, "b c d", {"merges[0]"});
  refused({"model", "merges", "0"}, "b x", {"merges[0]", "'x'"});
  refused({"model", "merges", "0"}, "c a", {"merges[0]", "'ca'"});
  for (const Json& pair :
       {Json(JsonArray{"a"}), Json(5), Json(JsonArray{5, "b"}), Json(JsonArray{"a", 5})}) {
    refused({"model", "merges", "1"}, pair, {"merges[1]"});
  }
  refused({"added_tokens"}, 3, {"added_tokens"});
  refused({"added_tokens", "0", "id"}, 2, {"'<s>'", "id 2", "gives it 6"});
  refused({"added_tokens", "0", "id"}, 7, {"'<s>'", "id 7", "gives it 6"});
  refused({"added_tokens", "0", "content"}, std::string(5000, 'x'), {"content", "4096"});
  refused({"added_tokens", "0", "id"}, -2, {"added_tokens[0].id"});
  refused({"added_tokens", "0", "content"}, "", {"content is empty"});
  refused({"added_tokens", "0", "content"}, "ab", {"'ab'", "6", "3"});
  refused([](Json& j) { j["added_tokens"].push_back(at(j, {"added_tokens", "0"})); }, {"twice"});
  refused(
      [](Json& j) {
        j["added_tokens"].push_back(at(j, {"added_tokens", "0"}));
        at(j, {"added_tokens", "1", "content"}) = "<t>";
      },
      {"twice"});
  refused(
      [](Json& j) {
        j["normalizer"] =
            parse_json(R"({"type": "Strip", "strip_left": true, "strip_right": true})", "");
        at(j, {"added_tokens", "0", "content"}) = " ";
        at(j, {"added_tokens", "0", "normalized"}) = true;
      },
      {"nothing is left of ' '"});
}

TEST_CASE("patterns that another dialect reads otherwise are refused") {
  for (const char* pattern :
       {"\\h",    "\\Ra",   "\\b",           "\\xff",      "[\\W]", "(a)\\1", "[a[bc]]", "[a&&b]",
        "(?m:a)", "(?x)a",  "(*UTF)a",       "(?<name>a)", "\\K",   "[]a]",   "a\\",     "(",
        "a{2,1}", "(?C1)a", "\\p{Nonsense}", "\\v",        "\\p{L", "[]",     "[a",      ")",
        "\\",     "(?",     "[a\\p{L"}) {
    refused({"pre_tokenizer", "pretokenizers", "0", "pattern", "Regex"}, pattern, {"pattern"});
  }
  // Braces that are no interval, and characters of several bytes behind a backslash.
  for (const char* pattern :
       {"a{", "a{1", "a{1,", "a{,}", "a{b}", "\\é+", "\\p{L}{2}?", "\\x{61}{1}+", "é{2}"}) {
    Json json = good();
    at(json, {"pre_tokenizer", "pretokenizers", "0", "pattern", "Regex"}) = pattern;
    INFO(pattern);
    CHECK_NOTHROW(Tokenizer(json, Json(), "dir").encode("abcé"));
  }
  // Exponential backtracking ends with an error, and soon.
  Json json = good();
  at(json, {"pre_tokenizer", "pretokenizers", "0", "pattern", "Regex"}) = "(a+a+)+[bc]";
  const Tokenizer tokenizer(json, Json(), "dir");
  CHECK_THROWS_AS(tokenizer.encode(std::string(200, 'a')), Error);
  // An empty match cuts and goes on.
  at(json, {"pre_tokenizer", "pretokenizers", "0", "pattern", "Regex"}) = "c*";
  CHECK(Tokenizer(json, Json(), "dir").encode("abc").ids == std::vector<int32_t>{0, 1, 2});
}

TEST_CASE("a pattern slow from every place ends in time", "[.long]") {
  Json json = good();  // 2^16 ways from each of a million places: below the limit for one
  at(json, {"pre_tokenizer", "pretokenizers", "0", "pattern", "Regex"}) = "(?:a|a){16}[bc]";
  const Tokenizer slow(json, Json(), "dir");
  CHECK_THROWS_AS(slow.encode(std::string(1 << 20, 'a')), Error);
}

TEST_CASE("end tokens of tokenizer_config.json") {
  const auto with = [](const char* config) {
    return Tokenizer(good(), parse_json(config, "config"), "dir");
  };
  CHECK(with(R"({"eos_token": "<s>"})").end_id() == 6);
  CHECK(with(R"({"eos_token": {"content": "<s>", "lstrip": false}})").end_id() == 6);
  CHECK(with(R"({"eos_token": "abc"})").end_id() == 4);
  CHECK_FALSE(with(R"({"eos_token": null})").has_end_token());
  CHECK_THROWS_AS(with(R"({"eos_token": "</s>"})"), Error);
  CHECK_THROWS_AS(with(R"({"eos_token": 3})"), Error);
  CHECK_THROWS_AS(with(R"([])"), Error);
}
