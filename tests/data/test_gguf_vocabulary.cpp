// Tokenizers as metadata of GGUF files: which pre-tokenizer, types, scores; what is refused.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/error.h"
#include "base/file_ops.h"
#include "data/tokenizer/gguf_vocabulary.h"
#include "support/has.h"
#include "support/test_paths.h"

using namespace hearth;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::string kGgufGolden = test::test_data() + "/tokenizer/";

/// A text value of encoded metadata, found by its key.
std::string text_value(const GgufMetadata& metadata, const std::string& key) {
  std::string head;
  append_gguf_text(head, key);
  append_gguf(head, uint32_t{8});
  const size_t at = metadata.bytes().find(head);
  if (at == std::string::npos) return "";
  uint64_t length = 0;
  __builtin_memcpy(&length, metadata.bytes().data() + at + head.size(), 8);
  return metadata.bytes().substr(at + head.size() + 8, static_cast<size_t>(length));
}

bool holds(const GgufMetadata& metadata, const GgufMetadata& part) {
  return metadata.bytes().find(part.bytes()) != std::string::npos;
}

GgufMetadata vocabulary_of(const TokenizerFiles& files, int64_t rows, const char* architecture) {
  GgufMetadata metadata;
  add_gguf_vocabulary(files, rows, architecture, metadata);
  return metadata;
}

std::string gguf_refusal(const TokenizerFiles& files, int64_t rows = 4000) {
  try {
    vocabulary_of(files, rows, "qwen3moe");
    return "";
  } catch (const Error& error) {
    CHECK(static_cast<int>(error.code()) == static_cast<int>(ExitCode::input));
    return error.what();
  }
}

/// tokenizer.json of a BPE with byte fallback: <unk>, <s>, </s>, 256 bytes, letters, "ab", "abc".
TokenizerFiles falling_back() {
  JsonObject vocabulary{{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
  const char* digits = "0123456789ABCDEF";
  for (int i = 0; i < 256; ++i) {
    vocabulary.emplace_back(std::string("<0x") + digits[i / 16] + digits[i % 16] + ">", 3 + i);
  }
  const char* more[] = {"abc", "ab", "a", "b", "c"};
  for (int i = 0; i < 5; ++i) vocabulary.emplace_back(more[i], 259 + i);
  const auto added = [](int id, const char* text) {
    return Json(JsonObject{{"id", id}, {"content", text}, {"special", true}});
  };
  TokenizerFiles files;
  files.source = "tokenizer.json";
  files.tokenizer = JsonObject{
      {"added_tokens", JsonArray{added(0, "<unk>"), added(1, "<s>"), added(2, "</s>")}},
      {"normalizer", JsonObject{{"type", "Sequence"},
                                {"normalizers", JsonArray{JsonObject{{"type", "Prepend"}}}}}},
      {"model", JsonObject{{"type", "BPE"},
                           {"byte_fallback", true},
                           {"unk_token", "<unk>"},
                           {"vocab", vocabulary},
                           {"merges", JsonArray{Json("a b"), Json("ab c")}}}}};
  files.config = JsonObject{{"bos_token", "<s>"},
                            {"eos_token", JsonObject{{"content", "</s>"}}},
                            {"add_bos_token", true},
                            {"add_eos_token", false}};
  return files;
}

}  // namespace

TEST_CASE("gguf vocabulary: byte-level tokenizers") {
  const TokenizerFiles qwen = read_tokenizer_files(kGgufGolden + "qwen", false);
  const GgufMetadata metadata = vocabulary_of(qwen, 900, "qwen3moe");
  CHECK(text_value(metadata, "tokenizer.ggml.model") == "gpt2");
  CHECK(text_value(metadata, "tokenizer.ggml.pre") == "qwen2");
  CHECK_FALSE(metadata.has("tokenizer.ggml.scores"));
  CHECK(metadata.has("tokenizer.ggml.merges"));
  const TokenizerFiles gpt2 = read_tokenizer_files(kGgufGolden + "gpt2", false);
  CHECK(text_value(vocabulary_of(gpt2, 600, "qwen3moe"), "tokenizer.ggml.pre") == "gpt-2");
  CHECK(text_value(vocabulary_of(gpt2, 600, "olmoe"), "tokenizer.ggml.pre") == "olmo");
  CHECK_THAT(gguf_refusal(qwen, 861), ContainsSubstring("beyond vocab_size, 861"));
}

TEST_CASE("gguf vocabulary: byte fallback has types and scores") {
  TokenizerFiles files = falling_back();
  const GgufMetadata metadata = vocabulary_of(files, 266, "llama");
  CHECK(text_value(metadata, "tokenizer.ggml.model") == "llama");
  CHECK(text_value(metadata, "tokenizer.ggml.pre") == "default");
  std::vector<int32_t> types(266, 5);
  std::vector<float> scores(266, -10000.0f);
  for (size_t i = 0; i < 264; ++i) types[i] = i < 3 ? 3 : i < 259 ? 6 : 1;
  for (size_t i = 0; i < 259; ++i) scores[i] = i < 3 ? -1000.0f : 0.0f;
  scores[259] = -1;  // "abc": the second merge
  scores[260] = 0;   // "ab": the first
  for (size_t i = 261; i < 264; ++i) scores[i] = -static_cast<float>(i - 259);
  GgufMetadata part;
  part.add_f32s("tokenizer.ggml.scores", scores);
  part.add_i32s("tokenizer.ggml.token_type", types);
  part.add_u32("tokenizer.ggml.bos_token_id", 1);
  part.add_u32("tokenizer.ggml.eos_token_id", 2);
  part.add_bool("tokenizer.ggml.add_bos_token", true);
  part.add_bool("tokenizer.ggml.add_eos_token", false);
  CHECK(holds(metadata, part));
  CHECK_FALSE(metadata.has("tokenizer.ggml.add_space_prefix"));
  files.tokenizer["normalizer"] = nullptr;
  CHECK(vocabulary_of(files, 266, "llama").has("tokenizer.ggml.add_space_prefix"));
}

TEST_CASE("gguf vocabulary: none without a tokenizer, and others are refused") {
  const TokenizerFiles none;
  const GgufMetadata metadata = vocabulary_of(none, 7, "olmoe");
  CHECK(text_value(metadata, "tokenizer.ggml.model") == "none");
  CHECK(metadata.has("olmoe.vocab_size"));
  for (const char* name : {"bert", "digits", "gpt-oss", "deepseek3"}) {
    INFO(name);
    TokenizerFiles files;
    files.source = "tokenizer.json";
    const Json recorded = parse_json(read_file(kGgufGolden + "pipelines/" + name + ".json"), name);
    const Json* inner = recorded.find("tokenizer");
    files.tokenizer = inner != nullptr ? *inner : recorded;
    CHECK_THAT(gguf_refusal(files, 200000), ContainsSubstring("no GGUF form"));
  }
}
