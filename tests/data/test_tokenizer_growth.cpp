// Components of tokenizer.json that make more of a text: bounded in proportion to it.
#include "data/tokenizer_file.h"

using namespace hearth;
using namespace hearth::test;

namespace {

Json replaces(const char* key, size_t count, const std::string& from, const std::string& to) {
  Json list = JsonArray{};
  for (size_t i = 0; i < count; ++i) {
    Json one;
    one["type"] = "Replace";
    one["pattern"]["String"] = from;
    one["content"] = to;
    list.push_back(std::move(one));
  }
  Json sequence;
  sequence["type"] = "Sequence";
  sequence[key] = std::move(list);
  return sequence;
}

const std::string kTen(10, 'a');

std::string growth_refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::input);
    return error.what();
  }
  return "accepted";
}

std::string encode_refusal(const char* part, Json value, const std::string& text) {
  Json json = good();
  json[part] = std::move(value);
  const Tokenizer tokenizer(json, Json(), "dir");
  return growth_refusal([&] { tokenizer.encode(text); });
}

}  // namespace

TEST_CASE("normalizers that multiply are refused, however they do it") {
  const auto component = [](const std::string& json) { return parse_json(json, "component"); };
  const std::string wanted =
      "dir/tokenizer.json: normalizer and pre_tokenizer: expands a text of 3 bytes";
  CHECK(encode_refusal("normalizer", replaces("normalizers", 10, "a", kTen), "cab").find(wanted) ==
        0);
  const std::string large(100'000, 'b');
  const std::string content = "\"content\": \"" + large + "\"}";
  for (const char* pattern : {R"({"String": ""})", R"({"Regex": ""})", R"({"Regex": "c*"})",
                              R"-({"Regex": "(?=a)"})-", R"({"String": "a"})"}) {
    INFO(pattern);
    CHECK(encode_refusal("normalizer",
                         component(R"({"type": "Replace", "pattern": )" + std::string(pattern) +
                                   ", " + content),
                         "cab")
              .find(wanted) == 0);
  }
  CHECK(encode_refusal("normalizer",
                       component(R"({"type": "Prepend", "prepend": ")" + large + "\"}"), "cab")
            .find(wanted) == 0);
  Json many = replaces("normalizers", 0, "", "");
  for (int i = 0; i < 40; ++i) {
    many["normalizers"].push_back(component(R"({"type": "ByteLevel"})"));
  }
  CHECK(encode_refusal("normalizer", many, "\xc3\xa9").find("dir/tokenizer.json: normalizer") == 0);
  CHECK(encode_refusal(
            "pre_tokenizer",
            [&] {
              Json steps;
              steps["type"] = "Sequence";
              for (int i = 0; i < 40; ++i) {
                steps["pretokenizers"].push_back(component(
                    R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": false})"));
              }
              return steps;
            }(),
            "\xc3\xa9")
            .find("dir/tokenizer.json: normalizer and pre_tokenizer") == 0);
}

TEST_CASE("edits that grow nothing, but remember much, are refused") {
  Json json = replaces("normalizers", 0, "", "");
  for (int i = 0; i < 500; ++i) {
    const Json both =
        replaces("normalizers", 1, i % 2 == 0 ? "ab" : "bc", i % 2 == 0 ? "bc" : "ab");
    json["normalizers"].push_back(both.find("normalizers")->as_array()[0]);
  }
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "ab";
  CHECK(encode_refusal("normalizer", json, text) != "accepted");
  CHECK(encode_refusal("normalizer", json, "abab") == "accepted");
}

TEST_CASE("what grows in proportion is read") {
  Json json = good();
  json["normalizer"] = replaces("normalizers", 1, "a", kTen);
  const Tokenizer tokenizer(json, Json(), "dir");
  CHECK(tokenizer.encode(std::string(100'000, 'a')).ids.size() == 1'000'000);
  json["normalizer"] = replaces("normalizers", 1, "a", std::string(60'000, 'b'));
  const Tokenizer once(json, Json(), "dir");  // a short text may become one of 64 KiB
  CHECK(once.encode("a").ids.size() == 60'000);
}

TEST_CASE("many pieces share one limit") {
  Json json = good();
  json["normalizer"] = replaces("normalizers", 1, "a", std::string(30'000, 'b'));
  const Tokenizer tokenizer(json, Json(), "dir");
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "a<s>";  // a piece between added tokens
  CHECK(growth_refusal([&] { tokenizer.encode(text); }).find("expands a text of 4000 bytes") !=
        std::string::npos);
}

TEST_CASE("decoders that multiply are refused, those that do not are streamed") {
  Json json = good();
  json["decoder"] = replaces("decoders", 10, "a", kTen);
  const Tokenizer tokenizer(json, Json(), "dir");
  const std::vector<int32_t> ids = {0};
  CHECK(growth_refusal([&] {
          tokenizer.decode(ids);
        }).find("dir/tokenizer.json: decoder: expands a text of 1 bytes") == 0);
  json["decoder"] = replaces("decoders", 2, "a", kTen);
  CHECK(Tokenizer(json, Json(), "dir").decode(ids).size() == 100);
  json["decoder"] = replaces("decoders", 1, "", std::string(100'000, 'b'));
  const Tokenizer everywhere(json, Json(), "dir");
  CHECK(growth_refusal([&] { everywhere.decode(ids); }) != "accepted");
}

TEST_CASE("added tokens that a normalizer makes long, and endless lists, are refused") {
  refused(
      [](Json& json) {
        json["normalizer"] = replaces("normalizers", 10, "a", kTen);
        at(json, {"added_tokens", "0", "content"}) = "<a>";
        at(json, {"added_tokens", "0", "normalized"}) = true;
      },
      {"normalizer, of added_tokens", "expands a text of 3 bytes"});
  refused(
      [](Json& json) {
        json["normalizer"] = replaces("normalizers", 1, "a", std::string(5000, 'b'));
        at(json, {"added_tokens", "0", "content"}) = "<a>";
        at(json, {"added_tokens", "0", "normalized"}) = true;
      },
      {"added_tokens[0].content", "after normalization"});
  refused([](Json& json) { json["normalizer"] = replaces("normalizers", 1001, "a", "b"); },
          {"normalizer.normalizers[1000]", "more than 1000 components"});
  refused([](Json& json) { json["decoder"] = replaces("decoders", 100'000, "a", "b"); },
          {"decoder.decoders[1000]", "more than 1000 components"});
  refused(
      [](Json& json) {
        const Json digits = JsonObject{{"type", "Digits"}, {"individual_digits", true}};
        json["pre_tokenizer"] =
            JsonObject{{"type", "Sequence"}, {"pretokenizers", JsonArray(1001, digits)}};
      },
      {"pre_tokenizer.pretokenizers[1000]", "more than 1000 components"});
}
