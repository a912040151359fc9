// Patterns in PCRE2's dialect, and decoders that look at each token apart.
#include <catch2/catch_test_macros.hpp>

#include "base/error.h"
#include "data/tokenizer/decoders.h"
#include "data/tokenizer/oniguruma.h"
#include "data/tokenizer/regex.h"

using namespace hearth;

namespace {

std::string first_match(const std::string& pattern, const std::string& text) {
  const auto match = Regex(pattern, "test").find(text, 0);
  return match ? text.substr(match->begin, match->end - match->begin) : "none";
}

std::string decoded(const char* decoder, const std::vector<std::string>& tokens) {
  const Decoder with(parse_json(decoder, "decoder"), "test");
  Decoder::Run run(with);
  std::string text;
  for (const std::string& token : tokens) text += run.push(token);
  return text + run.finish();
}

}  // namespace

TEST_CASE("intervals and anchors mean what they mean to Oniguruma") {
  CHECK(from_oniguruma("\\p{N}{1,3}+", "test") == "(?:\\p{N}{1,3})+");
  CHECK(from_oniguruma("(ab){2}?c", "test") == "(?:(ab){2})?c");
  CHECK(from_oniguruma("[^a-c]{,3}", "test") == "[^a-c]{0,3}");
  CHECK(from_oniguruma("a{2,3}?b++", "test") == "a{2,3}?b++");
  CHECK(from_oniguruma("{a}", "test") == "{a}");
  for (const char* same : {"\\P{L}", "\\pL", "\\PL", "\\p{L}\\x{41}", "\\x{41}"}) {
    CHECK(from_oniguruma(same, "test") == same);
  }
  CHECK(first_match("\\d{1,3}+", "12345678") == "12345678");
  CHECK(first_match("a{2}?b", "b") == "b");
  CHECK(first_match("x$", "ax\nb") == "x");
  CHECK(first_match("^b", "a\nb") == "b");
  CHECK(first_match("\\s+", "a\u180e\u3000") == "\u3000");
  CHECK(first_match("[\\w]+", "-e\u0301\u24b6_") == "e\u0301\u24b6_");
  CHECK(first_match("\\W", "e\u0301-") == "-");
  CHECK(first_match("(?i)ab", "xAB") == "AB");
}

TEST_CASE("a match far behind is found") {
  CHECK(first_match("b+", std::string(100000, 'a') + "bb") == "bb");
  CHECK(first_match("\u00e9", std::string(63, 'a') + "\u4e2d\u4e2d\u00e9") == "\u00e9");
  CHECK(first_match("c", std::string(100000, 'a')) == "none");
  for (size_t size = 60; size < 140; ++size)
    CHECK(first_match("c", std::string(size, 'a')) == "none");
}

TEST_CASE("decoders of single tokens") {
  CHECK(decoded(R"({"type": "Strip", "content": "_", "start": 2, "stop": 0})",
                {"_", "___a", "b_", "__"}) == "_ab_");
  CHECK(decoded(R"({"type": "Strip", "content": "_", "start": 0, "stop": 1})",
                {"a__", "_b", "c_d_"}) == "a__bc_d");
  CHECK(decoded(R"({"type": "BPEDecoder", "suffix": "</w>"})", {"a", "b</w>", "c</w>"}) == "ab c");
  CHECK(decoded(R"({"type": "Metaspace", "replacement": "_"})", {"_a_", "_b"}) == "a b");
  CHECK(decoded("null", {"a", "b"}) == "a b");
  CHECK(decoded(R"({"type": "ByteFallback"})", {"<0xC3>", "<0xA9>", "x", "<0xC3>", "y"}) ==
        "\u00e9x\ufffdy");
  CHECK(decoded(R"({"type": "ByteFallback"})", {"<0x+A>", "<0xABC", "<0xZZ>", "<0x1Z>",
                                                "<0x++>"}) == "\n<0xABC<0xZZ><0x1Z><0x++>");
  CHECK(decoded(R"({"type": "BPEDecoder", "suffix": ""})", {"ab", "\u00e9", "c"}) ==
        " a b  \u00e9 c");
}

TEST_CASE("decoders behind one that makes a token of all") {
  const auto behind = [](const std::string& stage) {
    return R"({"type": "Sequence", "decoders": [{"type": "Fuse"}, )" + stage + "]}";
  };
  CHECK(decoded(behind(R"({"type": "ByteLevel"})").c_str(), {"\u0120a", "\u00c3", "\u00a9"}) ==
        " a\u00e9");
  CHECK(decoded(behind(R"({"type": "ByteLevel"})").c_str(),
                {"\u0120a", "\u00c3\u00a9", "\u4e2d"}) == "\u0120a\u00c3\u00a9\u4e2d");
  CHECK(decoded(behind(R"({"type": "ByteLevel"})").c_str(), {}).empty());
  CHECK(decoded(behind(R"({"type": "BPEDecoder", "suffix": "</w>"})").c_str(),
                {"a</w>", "b</w>"}) == "ab");
  CHECK(decoded(behind(R"({"type": "ByteFallback"})").c_str(), {"<0x", "41>"}) == "A");
}
