// Samples for people.
#include "base/utf8.h"
#include "data/row_fixture.h"
#include "data/rows/sample_view.h"

using namespace hearth;
using namespace hearth::test;

namespace {

const TrainedMarks kBrackets{"[", "]"};

std::string shown(const Tokenizer& tokenizer, const std::string& text,
                  const std::vector<uint8_t>& trained) {
  return marked_text(tokenizer, tokenizer.encode(text).ids, trained, kBrackets);
}

}  // namespace

TEST_CASE("trained spans stand between marks") {
  const RowFixture f;
  const Tokenizer tokenizer(f.options.model);
  CHECK(shown(tokenizer, "abcd", {0, 1, 1, 0}) == "a[bc]d");
  CHECK(shown(tokenizer, "abcd", {1, 0, 0, 1}) == "[a]bc[d]");
  CHECK(shown(tokenizer, "abcd", {0, 0, 0, 0}) == "abcd");
  CHECK(shown(tokenizer, "", {}).empty());
  CHECK(shown(tokenizer, "a<|im_end|>\n", {0, 1, 1}) == "a[<|im_end|>\n]");
  // A character of several tokens stands with the last of them.
  CHECK(shown(tokenizer, "\u00e9x", {0, 1, 0}) == "[\u00e9]x");
  CHECK(shown(tokenizer, "\u00e9x", {1, 0, 0}) == "\u00e9x");
  CHECK(shown(tokenizer, "a\x1b[2J\tb", {0, 0, 0, 0, 0, 0, 0}) == "a\ufffd[2J\tb");
  CHECK(shown(tokenizer, "a\x7f\r\nb", {0, 0, 0, 0, 0}) == "a\ufffd\ufffd\nb");
  const std::vector<int32_t> ids{7, 8, 9};
  CHECK(marked_ids(ids, std::vector<uint8_t>{0, 1, 1}, kBrackets) == "7[ 8 9]");
  const Sample sample = f.read_row(
      R"({"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}]})");
  CHECK(marked_text(tokenizer, sample.ids, sample.trained()) ==
        "<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\n\u27e6A<|im_end|>\n\u27e7");
}

TEST_CASE("long samples are shortened between their marks") {
  CHECK(shortened("a[b]c", 5, kBrackets) == "a[b]c");
  const std::string text =
      std::string(1000, 'a') + "[" + std::string(1000, 'b') + "]" + std::string(1000, 'c');
  const std::string cut = shortened(text, 300, kBrackets);
  CHECK(cut == std::string(50, 'a') + "[... 900 bytes ...]" + std::string(50, 'a') + "[" +
                   std::string(49, 'b') + "[... 901 bytes ...]" + std::string(50, 'b') + "]" +
                   std::string(49, 'c') + "[... 901 bytes ...]" + std::string(50, 'c'));
  std::string many;
  for (int i = 0; i < 100; ++i) many += "xx[yy]";
  const std::string head = shortened(many, 60, kBrackets);
  CHECK(head == many.substr(0, 62) + "[... 538 bytes ...]");
  // Never within a character.
  std::string umlauts;
  for (int i = 0; i < 500; ++i) umlauts += "\u00e9";
  CHECK(find_invalid_utf8(shortened(umlauts, 301, kBrackets)) == std::string_view::npos);
  umlauts += "x";
  CHECK(find_invalid_utf8(shortened(umlauts, 301, kBrackets)) == std::string_view::npos);
  CHECK(find_invalid_utf8(shortened("x" + umlauts, 301, kBrackets)) == std::string_view::npos);
  CHECK(shortened(std::string(1000, '\x80'), 300, kBrackets) == "[... 1000 bytes ...]");
  // What is left out closes the span that it was in.
  CHECK(shortened(many, 65, kBrackets) == many.substr(0, 65) + "][... 535 bytes ...]");
}
