// tokenizer.json and a text: the input up to the first NUL byte is the file, the rest the text (or
// the file is a good one, when there is no NUL). Whatever is accepted must give spans in the text, and
// ids that decode to the same text at once and streamed.
#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "base/utf8.h"
#include "data/tokenizer/stream_decoder.h"
#include "data/tokenizer/tokenizer.h"
#include "support/bounded.h"
#include "support/json_mutator.h"

namespace {

using namespace hearth;

void check(bool condition) {
  if (!condition) std::abort();
}

Json good_file() {
  return parse_json(R"({"added_tokens": [{"id": 7, "content": "<s>"}, {"id": 8, "content": "<s"}],
    "normalizer": {"type": "NFC"}, "decoder": {"type": "ByteLevel"},
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "Ġ": 2, "ab": 3, "aba": 4, "ba": 5, "Ċ": 6},
              "merges": ["a b", "ab a", "b a"]}})",
                    "good");
}

void encode(const Tokenizer& tokenizer, std::string_view text) {
  Encoding encoding;
  try {
    // The text may grow 64-fold, and takes an id, a span and a symbol per byte of that.
    const test::Bounded bound(text.size(), {.times = 4096, .bytes = 8 << 20});
    encoding = tokenizer.encode(text);
  } catch (const Error& error) {  // a pattern that ran into its limit
    check(error.code() == ExitCode::input);
    return;
  }
  check(encoding.ids.size() == encoding.spans.size());
  std::string streamed;
  StreamDecoder decoder(tokenizer, false);
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    const TextSpan span = encoding.spans[i];
    check(span.begin <= span.end && span.end <= text.size());
    // Piece by piece: a decoder may write much for each id, and the whole text is long then.
    const std::string piece = decoder.push(encoding.ids[i]);
    check(find_invalid_utf8(piece) == std::string_view::npos);
    streamed += piece;
  }
  check(streamed + decoder.finish() == tokenizer.decode(encoding.ids));
  tokenizer.encode(text, {.add_special = true});
}

// Fields of the file; the text behind it stays.
std::string change_file(std::string_view input, uint32_t seed) {
  const size_t cut = std::min(input.find('\0'), input.size());
  return test::mutate_json(input.substr(0, cut), seed) + std::string(input.substr(cut));
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return test::mutate_input(data, size, most, seed, change_file);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t cut = input.find('\0');
  const std::string text =
      replace_invalid_utf8(input.substr(cut == std::string_view::npos ? 0 : cut + 1));
  static const Tokenizer good(good_file(), Json(), "good");
  encode(good, text);
  if (cut == std::string_view::npos) return 0;
  try {
    std::optional<Tokenizer> tokenizer;
    {
      const test::Bounded bound(cut, {.times = 256, .bytes = 8 << 20});
      tokenizer.emplace(parse_json(input.substr(0, cut), "tokenizer.json"), Json(), "dir");
    }
    encode(*tokenizer, text);
  } catch (const Error& error) {
    check(error.code() == ExitCode::input);
  }
  return 0;
}
