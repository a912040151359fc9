// A text through tokenizers of several pipelines: spans lie in the text and never go back, what comes
// of bytes decodes to the normal form of the text, streamed or not, and content spans change only
// what they hold. The first byte chooses the pipeline.
#include <cstdlib>

#include "base/error.h"
#include "base/utf8.h"
#include "data/tokenizer/stream_decoder.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/unicode_forms.h"
#include "support/bounded.h"

namespace {

using namespace hearth;

void check(bool condition) {
  if (!condition) std::abort();
}

Json vocabulary_of_bytes() {
  return parse_json(R"({"Ġ": 300, "a": 301, "b": 302, "ab": 303, "▁": 304, "▁a": 305, "é": 306})",
                    "vocab");
}

Tokenizer make(const char* parts, bool bytes) {
  Json json = parse_json(parts, "encode");
  JsonObject vocabulary = vocabulary_of_bytes().as_object();
  JsonArray merges = {Json("a b"), Json("▁ a")};
  int64_t next = 0;
  if (bytes) {  // every byte has a token
    vocabulary.clear();
    merges.clear();
    for (uint32_t code = 0x21; code < 0x144; ++code) {
      if ((code > 0x7e && code < 0xa1) || code == 0xad) continue;
      std::string character;
      append_utf8(code, character);
      vocabulary.emplace_back(character, next++);
    }
  }
  const auto size = static_cast<int64_t>(vocabulary.size());
  json["model"]["type"] = "BPE";
  json["model"]["vocab"] = vocabulary;
  json["model"]["merges"] = merges;
  json["added_tokens"] = parse_json(
      R"([{"content": "<s>", "special": true, "rstrip": true}, {"content": "<w", "single_word": true},
          {"content": "A b", "normalized": true, "lstrip": true}])",
      "added");
  for (int64_t i = 0; i < 3; ++i)
    json["added_tokens"].as_array()[static_cast<size_t>(i)]["id"] = size + i;
  return Tokenizer(json, Json(), "encode");
}

constexpr const char* kBytes = R"--({"normalizer": {"type": "NFC"},
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    "decoder": {"type": "ByteLevel"}})--";
constexpr const char* kMarks = R"--({"normalizer": {"type": "NFKD"},
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"},
    "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}})--";
constexpr const char* kEdits = R"--({"normalizer": {"type": "Sequence", "normalizers": [
      {"type": "Strip", "strip_left": true, "strip_right": false},
      {"type": "Prepend", "prepend": "▁"},
      {"type": "Replace", "pattern": {"Regex": "\\s+|b*"}, "content": "▁"},
      {"type": "Lowercase"}]},
    "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"},
      {"type": "Strip", "content": "▁", "start": 2, "stop": 1}]}})--";
constexpr const char* kWords = R"--({"normalizer": {"type": "NFC"},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "ByteLevel", "add_prefix_space": true, "use_regex": false},
      {"type": "Split", "pattern": {"Regex": "\\w+|(?=Ġ)"}, "behavior": "MergedWithNext",
       "invert": true},
      {"type": "Punctuation", "behavior": "Contiguous"}]}})--";

struct Pipeline {
  Tokenizer tokenizer;
  bool round_trip;  // of a text without added tokens, to its NFC
};

const Pipeline& pipeline(size_t which) {
  static const Pipeline all[] = {{make(kBytes, true), true},
                                 {make(kMarks, false), false},
                                 {make(kEdits, false), false},
                                 {make(kWords, true), false}};
  return all[which % std::size(all)];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Pipeline& with = pipeline(data[0]);
  const std::string text =
      replace_invalid_utf8({reinterpret_cast<const char*>(data) + 1, size - 1});
  Encoding encoding;
  {
    const test::Bounded bound(size, {.times = 512, .bytes = 4 << 20});
    encoding = with.tokenizer.encode(text);
  }
  check(encoding.ids.size() == encoding.spans.size());
  TextSpan last;
  for (const TextSpan& span : encoding.spans) {
    check(span.begin <= span.end && span.end <= text.size());
    if (span.begin == span.end) continue;  // put in by Replace where nothing was
    check(span.begin >= last.begin && span.end >= last.end);
    last = span;
  }
  const std::string decoded = with.tokenizer.decode(encoding.ids);
  StreamDecoder decoder(with.tokenizer, false);
  std::string streamed;
  for (const int32_t id : encoding.ids) {
    const std::string piece = decoder.push(id);
    check(find_invalid_utf8(piece) == std::string::npos);
    streamed += piece;
  }
  check(streamed + decoder.finish() == decoded);

  bool added = false;
  for (const int32_t id : encoding.ids) added |= with.tokenizer.vocabulary_size() - id <= 3;
  if (with.round_trip && !added) {
    AlignedText normal(text);
    normalize(normal, UnicodeForm::nfc);
    check(decoded == normal.text());
  }
  const TextSpan whole{0, static_cast<uint32_t>(text.size())};
  for (const int32_t id : with.tokenizer.encode(text, {.content = {&whole, 1}}).ids) {
    check(!with.tokenizer.is_special(id));
  }
  return 0;
}
