// A small tokenizer.json to change.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <functional>

#include "base/error.h"
#include "base/file_ops.h"
#include "data/tokenizer/tokenizer.h"

namespace hearth::test {

inline Json good() {
  return parse_json(R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 6, "content": "<s>", "single_word": false, "lstrip": false,
                      "rstrip": false, "normalized": false, "special": true}],
    "normalizer": {"type": "NFC"},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "\\p{L}+|\\s+"}, "behavior": "Isolated",
       "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}]},
    "post_processor": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "fuse_unk": false,
              "continuing_subword_prefix": "", "end_of_word_suffix": null, "byte_fallback": false,
              "ignore_merges": false,
              "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4, "bc": 8},
              "merges": ["b c", ["a", "b"], "a bc"]}})",
                    "good");
}

inline Json& at(Json& json, std::initializer_list<const char*> path) {
  Json* value = &json;
  for (const char* key : path) {
    value = value->is_array() ? &value->as_array().at(std::stoul(key)) : &(*value)[key];
  }
  return *value;
}

inline void refused(const std::function<void(Json&)>& change,
                    const std::vector<std::string>& words) {
  Json json = good();
  change(json);
  try {
    const Tokenizer tokenizer(json, Json(), "dir");
    FAIL_CHECK("accepted; expected words: " << words[0]);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::input);
    const std::string message = error.what();
    CHECK(message.find("dir/tokenizer.json") == 0);
    CHECK(message.size() < 600);
    for (const auto& word : words) {
      INFO(message << " lacks " << word);
      CHECK(message.find(word) != std::string::npos);
    }
  }
}

// Sets one value and expects it refused by path.
inline void refused(std::initializer_list<const char*> path, const Json& value,
                    const std::vector<std::string>& words) {
  refused([&](Json& json) { at(json, path) = value; }, words);
}

}  // namespace hearth::test
