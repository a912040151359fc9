// Components of tokenizer.json: values of another kind, and variants that are read.
#include "data/tokenizer_file.h"

using namespace hearth;
using namespace hearth::test;

TEST_CASE("components of another kind of value are refused") {
  const auto component = [](const char* json) { return parse_json(json, "component"); };
  for (const char* name : {"normalizer", "pre_tokenizer", "post_processor", "decoder"}) {
    refused({name}, 5, {name, "'5'"});
  }
  refused({"model"}, 5, {"model", "'5'"});
  refused({"model", "type"}, 5, {"model.type", "'5'"});
  refused({"model", "dropout"}, "x", {"model.dropout", "'x'"});
  refused({"normalizer"}, component(R"({"type": "Sequence", "normalizers": 5})"),
          {"normalizer.normalizers", "'5'"});
  refused(
      {"normalizer"},
      component(R"({"type": "Replace", "pattern": {"String": "", "Regex": ""}, "content": ""})"),
      {"normalizer.pattern", "either String or Regex"});
  refused({"decoder"}, component(R"({"type": "Sequence", "decoders": 5})"),
          {"decoder.decoders", "'5'"});
  for (const char* scheme : {"5", R"("last")"}) {
    refused(
        {"decoder"},
        component((std::string(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": )") +
                   scheme + "}")
                      .c_str()),
        {"decoder.prepend_scheme"});
  }
  for (const char* mark : {"", "ab"}) {
    refused({"decoder"},
            component(
                (std::string(R"({"type": "Metaspace", "replacement": ")") + mark + "\"}").c_str()),
            {"decoder.replacement", "one character"});
  }
  refused({"pre_tokenizer", "pretokenizers", "0", "behavior"}, 5, {"behavior", "'5'"});
  refused({"pre_tokenizer"},
          component(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": 5})"),
          {"prepend_scheme", "'5'"});
  for (const char* scheme : {"first", "always"}) {
    refused({"pre_tokenizer"},
            component((std::string(R"({"type": "Metaspace", "replacement": "_", "add_prefix_space":
                       false, "prepend_scheme": ")") +
                       scheme + "\"}")
                          .c_str()),
            {"add_prefix_space", scheme});
  }
  refused({"post_processor"}, component(R"({"type": "Sequence", "processors": 5})"),
          {"post_processor.processors", "'5'"});
  for (const char* pair : {"5", "[\"<s>\"]", "[6, 6]"}) {
    refused({"post_processor"},
            component((std::string(R"({"type": "BertProcessing", "sep": ["<s>", 6], "cls": )") +
                       pair + "}")
                          .c_str()),
            {"post_processor.cls", "a token and its id"});
  }
  const auto processor = [&](const std::string& members) {
    return component(("{\"type\": \"TemplateProcessing\", \"pair\": [], " + members + "}").c_str());
  };
  refused({"post_processor"}, processor(R"("single": 5, "special_tokens": {})"), {"single", "'5'"});
  refused({"post_processor"}, processor(R"("single": [], "special_tokens": 5)"),
          {"special_tokens", "'5'"});
  refused({"post_processor"},
          processor(R"("single": [{"Sequence": {"id": "B", "type_id": 0}}], "special_tokens": {})"),
          {"single[0].Sequence.id", "'B'"});
  refused({"post_processor"}, processor(R"("single": [{"SpecialToken": {"id": "x", "type_id": 0}}],
                       "special_tokens": {"x": {"id": "x", "ids": 5, "tokens": []}})"),
          {"special_tokens.'x'.ids", "'5'"});
}

TEST_CASE("variants of components are read") {
  const auto with = [](const char* name, const char* value) {
    Json json = good();
    json[name] = parse_json(value, "value");
    return Tokenizer(json, Json(), "dir");
  };
  for (const char* value :
       {R"({"type": "Metaspace", "replacement": "_", "add_prefix_space": false})",
        R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "never",
            "add_prefix_space": false})",
        R"({"type": "Punctuation", "behavior": "Removed"})", R"({"type": "Punctuation"})"}) {
    CHECK(with("pre_tokenizer", value).encode("abc").ids == std::vector<int32_t>{4});
  }
  for (const char* value :
       {R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "never"})",
        R"({"type": "Replace", "pattern": {"String": ""}, "content": ""})"}) {
    CHECK(with("decoder", value).decode(std::vector<int32_t>{4, 0}).starts_with("abc"));
  }
  Json old = good();  // without the type of its model
  at(old, {"model", "type"}) = nullptr;
  CHECK(Tokenizer(old, Json(), "dir").encode("abc").ids == std::vector<int32_t>{4});
  at(old, {"model", "vocab", ""}) = 5;  // no character begins such a token
  at(old, {"added_tokens", "0", "id"}) = 7;
  CHECK(Tokenizer(old, Json(), "dir").encode("abc").ids == std::vector<int32_t>{4});
}
