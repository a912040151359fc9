// tokenizer.json, tokenizer_config.json and chat_template.jinja, read for rows of text and chats.
#include <catch2/catch_test_macros.hpp>

#include "hostile/hostile.h"

using namespace hearth;
using namespace hearth::test;

namespace {

constexpr const char* kTokenizerFile = "model/tokenizer.json";
constexpr const char* kTokenizerConfig = "model/tokenizer_config.json";

std::function<void(const Place&)> changed(const char* file, std::function<void(Json&)> change) {
  return [=](const Place& p) {
    Json json = parse_json(p.read(file), "tokenizer");
    change(json);
    p.write(file, json.dump());
  };
}

std::function<void(const Place&)> model(const char* name, Json value) {
  return changed(kTokenizerFile, [=](Json& json) { json["model"][name] = value; });
}

std::function<void(const Place&)> pattern(const std::string& regex) {
  return changed(kTokenizerFile, [=](Json& json) {
    json["pre_tokenizer"] = parse_json(R"({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "x"}, "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false,
       "use_regex": false}]})",
                                       "pattern");
    json["pre_tokenizer"]["pretokenizers"].as_array()[0]["pattern"]["Regex"] = regex;
  });
}

// Ten Replaces, each by ten, of a letter that every row has.
std::function<void(const Place&)> multiplied(const char* part, const char* list) {
  return changed(kTokenizerFile, [=](Json& json) {
    Json steps;
    steps["type"] = "Sequence";
    for (int i = 0; i < 10; ++i) {
      steps[list].push_back(parse_json(
          R"({"type": "Replace", "pattern": {"Regex": "e|$"}, "content": "eeeeeeeeee"})", "step"));
    }
    json[part] = steps;
  });
}

std::function<void(const Place&)> text(const char* file, std::string content) {
  return [=](const Place& p) { p.write(file, content); };
}

}  // namespace

TEST_CASE("hostile: tokenizer.json") {
  const std::string name = "tokenizer.json";
  run_table(
      "tokenizer.json",
      {
          {"a pattern", pattern("\\p{L}+|\\s+"), {}, 0},
          {"Replaces that multiply",
           multiplied("normalizer", "normalizers"),
           {name, "normalizer", "expands a text"}},
          {"absent", [](const Place& p) { p.remove(kTokenizerFile); }, {name}},
          {"no bytes", text(kTokenizerFile, ""), {name}},
          {"no JSON", text(kTokenizerFile, "tokens"), {name, "line 1"}},
          {"a list", text(kTokenizerFile, "[]"), {name}},
          {"cut off",
           [](const Place& p) { p.write(kTokenizerFile, p.read(kTokenizerFile).substr(0, 1000)); },
           {name}},
          {"a byte order mark",
           [](const Place& p) { p.write(kTokenizerFile, "\xef\xbb\xbf" + p.read(kTokenizerFile)); },
           {name, "byte order"}},
          {"no UTF-8",
           text(kTokenizerFile, "{\"model\": {\"vocab\": {\"\xff\": 0}}}"),
           {name, "UTF-8"}},
          {"100,000 brackets", text(kTokenizerFile, std::string(100'000, '[')), {name, "nested"}},
          {"a key twice",
           text(kTokenizerFile, "{\"model\": {}, \"model\": {}}"),
           {name, "duplicate"}},
          {"above the limit of a file",
           [](const Place& p) { p.sparse(kTokenizerFile, "{", uint64_t{1} << 40); },
           {name, "1099511627776"}},
          {"no model",
           changed(kTokenizerFile, [](Json& json) { json["model"] = nullptr; }),
           {name, "model"}},
          {"dropout", model("dropout", 0.1), {name, "dropout", "0.1"}},
          {"another model", model("type", "Unigram"), {name, "Unigram"}},
          {"a model of 100,000 letters", model("type", std::string(100'000, 'U')), {name}},
          {"a model that writes to the terminal", model("type", "\x1b[31m\n"), {name}},
          {"an unknown key", model("surprise", 1), {name, "surprise"}},
          {"byte fallback that is no switch",
           model("byte_fallback", "on"),
           {name, "byte_fallback"}},
          {"no vocabulary", model("vocab", nullptr), {name, "vocab"}},
          {"a vocabulary that is a list", model("vocab", JsonArray{"a"}), {name, "vocab"}},
          {"a negative id",
           changed(kTokenizerFile, [](Json& j) { j["model"]["vocab"]["a"] = -1; }),
           {name, "'a'", "-1"}},
          {"an id of 2^31",
           changed(kTokenizerFile, [](Json& j) { j["model"]["vocab"]["a"] = int64_t{1} << 31; }),
           {name, "'a'", "2147483648"}},
          {"an id of 2^63",
           changed(kTokenizerFile, [](Json& j) { j["model"]["vocab"]["a"] = uint64_t{1} << 63; }),
           {name, "'a'"}},
          {"an id that is a float",
           changed(kTokenizerFile, [](Json& j) { j["model"]["vocab"]["a"] = 1.5; }),
           {name, "'a'", "1.5"}},
          {"two tokens with one id",
           changed(kTokenizerFile, [](Json& j) { j["model"]["vocab"]["b"] = 0; }),
           {name, "id 0"}},
          {"a hole of ids the size of memory",
           changed(kTokenizerFile,
                   [](Json& j) { j["model"]["vocab"]["b"] = (int64_t{1} << 24) - 1; }),
           {name, "'b'", "16777215"}},
          {"merges that are a number", model("merges", 7), {name, "merges"}},
          {"a merge of one token", model("merges", JsonArray{"ab"}), {name, "merges[0]"}},
          {"a merge of unknown tokens",
           model("merges", JsonArray{"alpha beta"}),
           {name, "merges[0]", "alpha"}},
          {"an unknown normalizer",
           changed(kTokenizerFile,
                   [](Json& j) {
                     j["normalizer"] = JsonObject{{"type", "Rot13"}};
                   }),
           {name, "Rot13"}},
          {"an unknown pre-tokenizer",
           changed(kTokenizerFile, [](Json& j) { j["pre_tokenizer"]["type"] = "Shuffle"; }),
           {name, "Shuffle"}},
          {"an unknown post-processor",
           changed(kTokenizerFile,
                   [](Json& j) {
                     j["post_processor"] = JsonObject{{"type", "Odd"}};
                   }),
           {name, "Odd"}},
          {"an unknown decoder",
           changed(kTokenizerFile, [](Json& j) { j["decoder"]["type"] = "Odd"; }),
           {name, "Odd"}},
          {"an added token without a text",
           changed(kTokenizerFile,
                   [](Json& j) { j["added_tokens"].as_array()[0]["content"] = ""; }),
           {name, "added_tokens[0]"}},
          {"an added token twice",
           changed(kTokenizerFile,
                   [](Json& j) {
                     const Json first = j["added_tokens"].as_array()[0];
                     j["added_tokens"].push_back(first);
                   }),
           {name, "twice"}},
          {"a pattern that is none", pattern("("), {name, "pattern"}},
          {"a pattern of another dialect", pattern("(?<name>a)\\1"), {name, "pattern"}},
          {"a pattern of 1,000,000 letters",
           pattern(std::string(1'000'000, 'a')),
           {name, "pattern"}},
          {"a pattern nested 10,000 deep",
           pattern(std::string(5000, '(') + "a" + std::string(5000, ')')),
           {name, "pattern"}},
      },
      eval_words());
  run_table("tokenizer.json, kind", not_a_file(kTokenizerFile), eval_words());
}

TEST_CASE("hostile: tokenizer_config.json and the chat template") {
  const std::string name = "tokenizer_config.json";
  run_table(
      "tokenizer_config.json",
      {
          {"no JSON", text(kTokenizerConfig, "{"), {name}},
          {"a list", text(kTokenizerConfig, "[]"), {name}},
          {"a key twice", text(kTokenizerConfig, "{\"a\": 1, \"a\": 1}"), {name, "duplicate"}},
          {"an end token that is no token",
           changed(kTokenizerConfig, [](Json& j) { j["eos_token"] = "</nowhere>"; }),
           {name, "</nowhere>"}},
          {"an end token that is a number",
           changed(kTokenizerConfig, [](Json& j) { j["eos_token"] = 2; }),
           {name, "eos_token"}},
          {"100 MB",
           [](const Place& p) { p.sparse(kTokenizerConfig, "{", 100'000'000); },
           {name, "100000000"}},
      },
      eval_words());
  run_table("tokenizer_config.json, kind", not_a_file(kTokenizerConfig), eval_words());

  const char* chat =
      "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, "
      "{\"role\": \"assistant\", \"content\": \"b\"}]}\n";
  const char* file = "model/chat_template.jinja";
  std::vector<Case> table = not_a_file(file);
  table.push_back({"no template", text(file, "{{ raise_exception('no') }}"), {"chat_template"}});
  table.push_back({"no UTF-8", text(file, "\xff\xfe"), {}});
  table.push_back({"100 MB",
                   [=](const Place& p) { p.sparse(file, "{", 100'000'000); },
                   {"chat_template.jinja", "100000000"}});
  for (Case& row : table) {
    row.plant = [=, plant = row.plant](const Place& p) {
      plant(p);
      p.write("rows.jsonl", chat);
    };
  }
  table.back().says.push_back("chat_template.jinja");
  run_table("chat_template.jinja", table, eval_words());
}
