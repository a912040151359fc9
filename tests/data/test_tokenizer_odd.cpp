// Letters that the library's tables lack, rare normal forms, vocabularies of rare kinds: as the
// official library (tokenizers 0.23.3) has them.
#include "data/tokenizer/builtin_tokenizer.h"
#include "data/tokenizer/normalizers.h"
#include "data/tokenizer/unicode_forms.h"
#include "support/temporary_directory.h"
#include "tokenizer_file.h"

using namespace hearth;
using namespace hearth::test;

namespace {

std::string text_of(uint32_t code) {
  std::string text;
  append_utf8(code, text);
  return text;
}

std::string normal(const std::string& type, const std::string& given,
                   const std::string& more = "") {
  const Normalizer normalizer(parse_json(R"({"type": ")" + type + "\"" + more + "}", "n"), "n");
  AlignedText text(given);
  normalizer.apply(text);
  return std::string(text.text());
}

// The codes of a list that a class of characters has.
template <class F>
std::vector<uint32_t> those(const F& is, const std::vector<uint32_t>& codes) {
  std::vector<uint32_t> found;
  for (const uint32_t code : codes) {
    if (is(code)) found.push_back(code);
  }
  return found;
}

// The tokenizer of init, changed.
Tokenizer builtin(const std::function<void(Json&)>& change) {
  const TemporaryDirectory directory;
  write_builtin_tokenizer(directory.path());
  Json json = parse_json(read_file(directory / "tokenizer.json"), "builtin");
  change(json);
  return Tokenizer(json, Json(), "builtin");
}

std::string shown(const Encoding& encoding) {
  std::string text;
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    text += std::to_string(encoding.ids[i]) + "@" + std::to_string(encoding.spans[i].begin) + "-" +
            std::to_string(encoding.spans[i].end) + " ";
  }
  return text;
}

}  // namespace

TEST_CASE("odd letters: classes of characters") {
  using Codes = std::vector<uint32_t>;
  const Codes spaces{0x09,   0x0d,   0x20,   0x85,   0xa0,   0x1680, 0x2000,
                     0x200a, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000};
  CHECK(those(is_space, spaces) == spaces);
  CHECK(those(is_space, {0x08, 0x0e, 0x21, 0x180e, 0x200b, 0x2060, 0x3001, 'a'}).empty());
  CHECK(those(is_accent, {0x301, 0x7fd, 0x1cf1, 0x1cf2, 0x1cf3, 0x1cf4, 'a'}) ==
        Codes{0x301, 0x1cf2, 0x1cf3, 0x1cf4});
  CHECK(those(is_punctuation, {0x61d, 0x166d, 0x111c9, 0x2014, '!', 'a'}) ==
        Codes{0x166d, 0x111c9, 0x2014, '!'});
  CHECK(those(is_word, {0x24b6, 0x1f130, 0x1f150, 0x1f170, 0x200c, 0x200d, 0x203f, 0x2028, '-'}) ==
        Codes{0x24b6, 0x1f130, 0x1f150, 0x1f170, 0x200c, 0x200d, 0x203f});
}

TEST_CASE("odd letters: normal forms") {
  for (const auto& [form, code] : {std::pair<const char*, uint32_t>{"NFD", 0x11938},
                                   {"NFKC", 0x11938},
                                   {"NFKD", 0x32ff},
                                   {"NFKC", 0x32ff},
                                   {"NFC", 0x16d67}}) {
    CAPTURE(form, code);
    CHECK(normal(form, "a" + text_of(code)) == "a" + text_of(code));
  }
  CHECK(normal("NFC", "\u1100\u1161") == "\uac00");
  for (uint32_t code = 0; code < 0x120; ++code) {
    CAPTURE(code);
    const bool dropped = (code >= 0x01 && code <= 0x08) || code == 0x0b ||
                         (code >= 0x0e && code <= 0x1f) || code == 0x7f || code == 0x8f ||
                         code == 0x9f;
    const bool space = code == 0x09 || code == 0x0a || code == 0x0c || code == 0x0d;
    CHECK(normal("Nmt", "a" + text_of(code)) == "a" + (dropped ? "" : space ? " " : text_of(code)));
  }
  for (const uint32_t code : {0x1680, 0x200b, 0x200f, 0x2028, 0x2029, 0x2581, 0xfeff, 0xfffd}) {
    CHECK(normal("Nmt", text_of(code)) == " ");
  }
  for (const uint32_t code : {0x1681, 0x200a, 0x2010, 0x2027, 0x202a, 0x2580, 0xfefe, 0xfffc}) {
    CHECK(normal("Nmt", text_of(code)) == text_of(code));
  }
  const auto stripped = [](bool left, bool right) {
    const auto flag = [](bool on) { return on ? "true" : "false"; };
    return normal(
        "Strip", " \u3000a \u3000",
        std::string(R"(, "strip_left": )") + flag(left) + R"(, "strip_right": )" + flag(right));
  };
  CHECK(stripped(true, true) == "a");
  CHECK(stripped(false, true) == " \u3000a");
  CHECK(stripped(true, false) == "a \u3000");
  CHECK(stripped(false, false) == " \u3000a \u3000");
}

TEST_CASE("odd vocabularies: of bytes") {
  const Tokenizer plain = builtin([](Json&) {});
  CHECK_FALSE(plain.is_special(-1));
  CHECK_FALSE(plain.is_special(1 << 20));
  // An unknown token that the vocabulary lacks is never needed, where every byte has a token.
  const Tokenizer no_unknown = builtin([](Json& json) { json["model"]["unk_token"] = "none"; });
  CHECK(no_unknown.encode("a\u00e9").ids == plain.encode("a\u00e9").ids);
  // A word of the vocabulary that is of no bytes.
  const Tokenizer odd = builtin([](Json& json) {
    json["model"]["ignore_merges"] = true;
    for (auto& token : json["added_tokens"].as_array()) {
      token["id"] = token.find("id")->as_int() + 1;
    }
    json["model"]["vocab"]["\u4e2d"] = 256;
  });
  CHECK(odd.encode("a\u4e2d").ids == plain.encode("a\u4e2d").ids);
  // A suffix of words: no byte at the end of one is its token alone.
  const Tokenizer suffix =
      builtin([](Json& json) { json["model"]["end_of_word_suffix"] = "</w>"; });
  CHECK(suffix.encode("ab").ids.size() < 2);
}

TEST_CASE("odd vocabularies: bytes of characters that have a prefix") {
  const Json json = parse_json(R"({"model": {"type": "BPE", "byte_fallback": true,
    "continuing_subword_prefix": "#", "merges": [],
    "vocab": {"a": 0, "#a": 1, "<0xC3>": 2, "<0xA9>": 3, "<0x23>": 4}}})",
                               "prefix");
  const Tokenizer tokenizer(json, Json(), "prefix");
  CHECK(shown(tokenizer.encode("\u00e9")) == "2@0-1 3@1-2 ");
  CHECK(shown(tokenizer.encode("a\u00e9a")) == "0@0-1 4@1-3 2@1-3 3@1-3 1@3-4 ");
}

TEST_CASE("odd vocabularies: added tokens that are one in their normal form") {
  Json json = good();
  json["normalizer"] = parse_json(R"({"type": "Lowercase"})", "n");
  json["model"]["vocab"]["bc"] = 5;
  const auto add = [&](int64_t id, const char* content) {
    json["added_tokens"].as_array().push_back(JsonObject{{"id", id},
                                                         {"content", content},
                                                         {"single_word", false},
                                                         {"lstrip", false},
                                                         {"rstrip", false},
                                                         {"normalized", true},
                                                         {"special", false}});
  };
  add(7, "<X>");
  add(8, "<x>");
  const Tokenizer tokenizer(json, Json(), "dir");
  for (const char* text : {"<X>", "<x>"}) {
    CHECK(tokenizer.encode(text).ids == std::vector<int32_t>{7});
  }
}
