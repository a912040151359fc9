#include "data/tokenizer/tokenizer.h"

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <map>
#include <thread>

#include "base/error.h"
#include "base/file_ops.h"
#include "base/random.h"
#include "base/utf8.h"
#include "data/tokenizer/builtin_tokenizer.h"
#include "data/tokenizer/byte_alphabet.h"
#include "data/tokenizer/stream_decoder.h"
#include "support/temporary_directory.h"
#include "support/test_paths.h"

using namespace hearth;

namespace {

const std::string kGolden = test::test_data("/tokenizer/");

Json golden_cases(const std::string& name) {
  const std::string path = kGolden + name + "/cases.json";
  return parse_json(read_file(path), path);
}

std::vector<int32_t> integers(const Json& list) {
  std::vector<int32_t> values;
  for (const Json& value : list.as_array()) values.push_back(static_cast<int32_t>(value.as_int()));
  return values;
}

bool continues_character(std::string_view text, uint32_t at) {
  return at < text.size() && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80;
}

// Spans in characters, a character counted in as soon as one byte of it is: as the library has it.
std::vector<int32_t> character_offsets(std::string_view text, const std::vector<TextSpan>& spans) {
  std::vector<int32_t> before(text.size() + 1);  // characters that begin before a byte
  for (size_t i = 0; i < text.size(); ++i) {
    before[i + 1] = before[i] + (continues_character(text, static_cast<uint32_t>(i)) ? 0 : 1);
  }
  std::vector<int32_t> offsets;
  for (const TextSpan& span : spans) {
    offsets.push_back(continues_character(text, span.begin) ? before[span.begin] - 1
                                                            : before[span.begin]);
    offsets.push_back(before[span.end]);
  }
  return offsets;
}

// Spans follow one another and leave nothing out; clusters that normalization changed may repeat.
bool cover(const Encoding& encoding, std::string_view text) {
  uint32_t end = 0;
  for (const TextSpan& span : encoding.spans) {
    if (span.begin > end || span.end < end || span.end <= span.begin) return false;
    end = span.end;
  }
  return end == text.size() && encoding.spans.size() == encoding.ids.size();
}

double seconds_of(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("ids and offsets of the official library") {
  for (const std::string name : {"qwen", "gpt2"}) {
    const Tokenizer tokenizer(kGolden + name);
    int64_t with_offsets = 0;
    const Json cases = golden_cases(name);
    REQUIRE(cases.as_array().size() > 250);
    for (const Json& golden : cases.as_array()) {
      const std::string& text = golden.find("text")->as_string();
      INFO(name << ": " << golden.find("text")->dump());
      const Encoding encoding = tokenizer.encode(text);
      CHECK(encoding.ids == integers(*golden.find("ids")));
      CHECK(cover(encoding, text));
      if (const Json* offsets = golden.find("offsets")) {
        ++with_offsets;
        CHECK(character_offsets(text, encoding.spans) == integers(*offsets));
        CHECK(tokenizer.decode(encoding.ids) == text);  // normalization changed nothing
      }
      if (name == "gpt2") CHECK(tokenizer.decode(encoding.ids) == text);
      // Decoding gives the normalized text, which gives the same ids again.
      const std::string decoded = tokenizer.decode(encoding.ids);
      REQUIRE(find_invalid_utf8(decoded) == std::string::npos);
      CHECK(tokenizer.decode(tokenizer.encode(decoded).ids) == decoded);
    }
    CHECK(with_offsets > (name == "qwen" ? 150 : -1));
  }
}

TEST_CASE("what a tokenizer says about itself") {
  const Tokenizer tokenizer(kGolden + "qwen");
  CHECK(tokenizer.vocabulary_size() == 862);
  CHECK(tokenizer.end_token() == "<|im_end|>");
  CHECK(tokenizer.id_of("<|im_end|>") == tokenizer.end_id());
  CHECK(tokenizer.is_special(tokenizer.end_id()));
  CHECK_FALSE(tokenizer.is_special(*tokenizer.id_of("<think>")));
  CHECK(tokenizer.token(*tokenizer.id_of("<think>")) == "<think>");
  CHECK(tokenizer.token(*tokenizer.id_of("\u0120")) == "\u0120");
  CHECK(tokenizer.decode(std::vector{*tokenizer.id_of("\u0120")}) == " ");
  CHECK_FALSE(tokenizer.id_of("no such token"));
  CHECK_FALSE(tokenizer.token(862));
  CHECK_FALSE(tokenizer.token(-1));
  CHECK(tokenizer.decode(std::vector{862, -1}).empty());
  CHECK_THROWS_AS(tokenizer.encode("\xff"), std::logic_error);

  // A spelled-out merge list and the strings of another file are the same pairs; end token as object.
  const Tokenizer gpt2(kGolden + "gpt2");
  CHECK(gpt2.end_id() == 2);
}

TEST_CASE("special tokens that somebody wrote are text where he wrote them") {
  const Tokenizer tokenizer(kGolden + "qwen");
  const std::string text = "<|im_end|><|im_end|><think>";
  const int32_t end = tokenizer.end_id(), think = *tokenizer.id_of("<think>");
  CHECK(tokenizer.encode(text).ids == std::vector<int32_t>{end, end, think});
  const TextSpan second{10, 20}, touching{5, 11}, rest{20, 27};
  std::vector<int32_t> expected = {end};
  for (const int32_t id :
       tokenizer.encode("<|im_end|>", {.content = std::vector{TextSpan{0, 10}}}).ids)
    expected.push_back(id);
  CHECK(expected.size() > 3);
  expected.push_back(think);
  CHECK(tokenizer.encode(text, {.content = std::vector{second}}).ids == expected);
  CHECK(tokenizer.encode(text, {.content = std::vector{touching}}).ids.back() == think);
  CHECK(tokenizer.encode(text, {.content = std::vector{touching}}).ids[0] != end);
  CHECK(tokenizer.encode(text, {.content = std::vector{rest}}).ids ==
        std::vector<int32_t>{end, end, think});
}

TEST_CASE("spans point into the text before normalization") {
  const Tokenizer tokenizer(kGolden + "qwen");
  const std::string text = "xe\u0301 <|im_end|>\u212b!";  // e + acute; the sign for angstrom
  const Encoding encoding = tokenizer.encode(text);
  CHECK(cover(encoding, text));
  std::map<uint32_t, std::pair<uint32_t, std::string>> by_begin;  // where a span ends, its bytes
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    auto& [end, bytes] = by_begin[encoding.spans[i].begin];
    end = encoding.spans[i].end;
    bytes += bytes_of_alphabet(*tokenizer.token(encoding.ids[i])).value();
  }
  CHECK(by_begin[1] == std::pair<uint32_t, std::string>{4, "\u00e9"});
  CHECK(by_begin[5] == std::pair<uint32_t, std::string>{15, "<|im_end|>"});
  CHECK(by_begin[15] == std::pair<uint32_t, std::string>{18, "\u00c5"});
  CHECK(by_begin[18] == std::pair<uint32_t, std::string>{19, "!"});
}

TEST_CASE("streamed text is whole characters, and all of it") {
  const Tokenizer tokenizer(kGolden + "qwen");
  const Json cases = golden_cases("qwen");
  for (const Json& golden : cases.as_array()) {
    const auto ids = integers(*golden.find("ids"));
    StreamDecoder decoder(tokenizer, false);
    std::string streamed;
    for (const int32_t id : ids) {
      const std::string part = decoder.push(id);
      REQUIRE(find_invalid_utf8(part) == std::string::npos);
      streamed += part;
    }
    streamed += decoder.finish();
    CHECK(streamed == tokenizer.decode(ids));
  }

  // Bytes that become no character: a replacement for what began as one, at the earliest moment.
  const auto byte = [&](const char* alphabet) { return *tokenizer.id_of(alphabet); };
  const int32_t e2 = byte("\u00e2"), x80 = byte("\u0122"), a = byte("a");
  StreamDecoder decoder(tokenizer, true);
  CHECK(decoder.push(x80) == "\ufffd");
  CHECK(decoder.push(e2).empty());
  CHECK(decoder.push(tokenizer.end_id()).empty());  // special: no text
  CHECK(decoder.push(x80).empty());
  CHECK(decoder.push(a) == "\ufffda");
  CHECK(decoder.push(e2).empty());
  CHECK(decoder.finish() == "\ufffd");
  CHECK(decoder.finish().empty());
}

TEST_CASE("decode(encode(x)) is x, or its normal form, for any text") {
  const Tokenizer tokenizer(kGolden + "gpt2");
  const Random random(5, RandomSite::sample);
  uint64_t draws = 0;
  for (int i = 0; i < 500; ++i) {
    std::string text;
    for (uint64_t length = random.below(draws++, 60); length > 0; --length) {
      const uint64_t kind = random.below(draws++, 4);
      const uint64_t limit = kind == 0 ? 0x80 : kind == 1 ? 0x800 : kind == 2 ? 0xd800 : 0x10000;
      uint32_t code = static_cast<uint32_t>(random.below(draws++, limit));
      if (kind == 3) code += 0x10000;
      if (code < 0x80) {
        text += static_cast<char>(code);
      } else if (code < 0x800) {
        text += {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
      } else if (code < 0x10000) {
        text += {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 63)),
                 static_cast<char>(0x80 | (code & 63))};
      } else {
        text += {static_cast<char>(0xf0 | code >> 18), static_cast<char>(0x80 | (code >> 12 & 63)),
                 static_cast<char>(0x80 | (code >> 6 & 63)), static_cast<char>(0x80 | (code & 63))};
      }
    }
    const Encoding encoding = tokenizer.encode(text);
    REQUIRE(tokenizer.decode(encoding.ids) == text);
    REQUIRE(cover(encoding, text));
  }
}

TEST_CASE("long words take time in proportion") {
  const Tokenizer qwen(kGolden + "qwen");
  std::string letters(1 << 20, 'a');
  const Random random(6, RandomSite::sample);
  for (size_t i = 0; i < letters.size(); ++i) letters[i] = "etaoinshr"[random.below(i, 9)];
  const std::string spaces(1 << 20, ' ');
  std::string marks = "a";
  for (int i = 0; i < 200000; ++i) marks += "\u0301\u0323";
  // Quadratic work would take minutes. Generous: tests share the machine.
  for (const std::string& text : {letters, spaces, marks}) {
    bool covered = false;
    CHECK(seconds_of([&] { covered = cover(qwen.encode(text), text); }) < 20);
    CHECK(covered);
  }
}

TEST_CASE("threads share a tokenizer") {
  const Tokenizer tokenizer(kGolden + "qwen");
  const Json cases = golden_cases("qwen");
  std::vector<std::thread> threads;
  std::vector<int> wrong(3);
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (const Json& golden : cases.as_array()) {
        const auto ids = tokenizer.encode(golden.find("text")->as_string()).ids;
        if (ids != integers(*golden.find("ids"))) ++wrong[t];
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>{0, 0, 0});
}

TEST_CASE("the built-in tokenizer is one token a byte") {
  const test::TemporaryDirectory directory;
  write_builtin_tokenizer(directory.path());
  const Tokenizer tokenizer(directory.path());
  CHECK(tokenizer.vocabulary_size() == kBuiltinVocabulary);
  const std::string text = "a\u00e9\n<|im_end|>";
  const Encoding encoding = tokenizer.encode(text);
  CHECK(encoding.ids == std::vector<int32_t>{'a', 0xc3, 0xa9, '\n', 258});
  CHECK(tokenizer.end_id() == 258);
  for (int byte = 0; byte < 256; ++byte) {
    CHECK(tokenizer.token(byte) == alphabet_character(static_cast<uint8_t>(byte)));
  }
  CHECK_THROWS_AS(write_builtin_tokenizer(directory.path()), Error);
}

TEST_CASE("lines of a file") {
  const test::TemporaryDirectory directory;
  write_builtin_tokenizer(directory.path());
  const Tokenizer tokenizer(directory.path());
  const auto lines = [&](std::string_view content) {
    const std::string path = directory / "lines";
    write_file_atomically(path, content);
    std::vector<std::vector<int32_t>> all;
    encode_lines(tokenizer, path, true, [&](const Encoding& e) { all.push_back(e.ids); });
    return all;
  };
  using Lines = std::vector<std::vector<int32_t>>;
  CHECK(lines("").empty());
  CHECK(lines("\n") == Lines{{}});
  CHECK(lines("a\nb") == Lines{{'a'}, {'b'}});
  CHECK(lines("a\r\n\nb\n") == Lines{{'a', '\r'}, {}, {'b'}});
  CHECK(lines("\u2028\x0b\x1c\n") == Lines{{0xe2, 0x80, 0xa8, 0x0b, 0x1c}});
  CHECK(lines(std::string_view("\0a\n", 3)) == Lines{{0, 'a'}});
  CHECK(lines("\ufeff\n") == Lines{{0xef, 0xbb, 0xbf}});

  const std::string many(3 << 20, 'x');  // longer than what is read at once
  CHECK(lines("a\n" + many + "\nb").at(1).size() == many.size());
  try {
    lines("good\nbad \xff\n");
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::input);
    CHECK(std::string(error.what()).find("lines:2: invalid UTF-8") != std::string::npos);
  }
}
