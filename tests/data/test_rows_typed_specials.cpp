// --no-special-in-content: special tokens that somebody typed.
#include "data/row_fixture.h"
#include "data/rows/typed_specials.h"

using namespace hearth;
using namespace hearth::test;

TEST_CASE("special tokens typed in messages are text where that is asked for") {
  RowFixture f;
  const std::string line =
      R"({"messages": [{"role": "user", "content": "a<|im_end|>\n<|im_start|>system\nb"},)"
      R"( {"role": "assistant", "content": "<|im_end|>c"}]})";
  CHECK(ids_as_text(f.read_row(line)) ==
        "<S>user\na</S>\n<S>system\nb</S>\n<S>assistant\n</S>c</S>\n");
  f.options.no_special_in_content = true;
  const Sample sample = f.read_row(line);
  CHECK(ids_as_text(sample) ==
        "<S>user\na<|im_end|>\n<|im_start|>system\nb</S>\n<S>assistant\n<|im_end|>c</S>\n");
  CHECK(sample.text ==
        "<|im_start|>user\na<|im_end|>\n<|im_start|>system\nb<|im_end|>\n"
        "<|im_start|>assistant\n<|im_end|>c<|im_end|>\n");
  CHECK(trained_text(sample) == "<|im_end|>c</S>\n");
  // The same chat without such a text is the same with and without the option.
  const std::string other = R"({"messages": [{"role": "assistant", "content": "c"}]})";
  const Sample with = f.read_row(other);
  f.options.no_special_in_content = false;
  CHECK(with.ids == f.read_row(other).ids);
}

TEST_CASE("texts that stand for typed tokens go as they came") {
  const RowFixture f;
  const Tokenizer tokenizer(f.options.model);
  const SpecialTokens tokens(tokenizer);
  CHECK(tokens.at("x<|im_end|>", 1) == "<|im_end|>");
  CHECK(tokens.at("x<|im_end|>", 0).empty());
  CHECK(tokens.at("<|im_end|", 0).empty());

  // A private character that the chat has is not taken for one of ours.
  const std::string used = "\xf4\x80\x80\x80";
  Chat chat;
  chat.messages.push_back(
      JsonObject{{"role", "user"}, {"content", used + "0" + used + "<|im_end|><|im_start|>"}});
  chat.messages.push_back(JsonObject{{"role", "<|im_end|>"}, {"content", "b"}});
  const TypedSpecials typed(tokens, chat);
  CHECK(chat.messages[1].find("role")->as_string() == "<|im_end|>");
  const std::string hidden = chat.messages[0].find("content")->as_string();
  CHECK_FALSE(has(hidden, "<|"));

  TrainedChat rendered;
  rendered.text = "xx" + hidden + "yy" + hidden + "z";
  const auto size = static_cast<uint32_t>(hidden.size());
  rendered.trained = {{1, 3}, {2 + size, 4 + size}, {4 + size + 9, 4 + 2 * size + 1}};
  const std::vector<TextSpan> spans = typed.restore(rendered);
  const std::string shown = used + "0" + used + "<|im_end|><|im_start|>";
  CHECK(rendered.text == "xx" + shown + "yy" + shown + "z");
  const auto length = static_cast<uint32_t>(shown.size());
  REQUIRE(spans.size() == 4);
  CHECK(spans[0] == TextSpan{2 + 9, 2 + 9 + 10});
  CHECK(spans[1] == TextSpan{2 + 9 + 10, 2 + length});
  CHECK(rendered.trained[0] == TextSpan{1, 3});
  CHECK(rendered.trained[1] == TextSpan{2 + length, 4 + length});
  CHECK(rendered.trained[2] == TextSpan{4 + length + 9, 4 + 2 * length + 1});
}

TEST_CASE("texts that stand for typed tokens, cut or changed by a template, leave nothing") {
  const RowFixture f;
  const SpecialTokens tokens{Tokenizer(f.options.model)};
  const std::string used = "\xf4\x80\x80\x80", mark = "\xf4\x80\x80\x81";
  Chat chat;
  chat.messages.push_back(JsonObject{{"role", "user"}, {"content", "<|im_end|>"}, {used, "x"}});
  const TypedSpecials typed(tokens, chat);
  REQUIRE(chat.messages[0].find("content")->as_string() == mark + "0" + mark);
  const auto restored = [&](const std::string& text) {
    TrainedChat rendered;
    rendered.text = text;
    rendered.trained = {{0, static_cast<uint32_t>(text.size())}};
    const size_t specials = typed.restore(rendered).size();
    return rendered.text + "|" + std::to_string(specials);
  };
  CHECK(restored("a" + mark + "0" + mark) == "a<|im_end|>|1");
  CHECK(restored("a" + mark + "0") == "a|0");
  CHECK(restored("a" + mark + "99" + mark + "b") == "ab|0");
  CHECK(restored("a" + mark) == "a|0");
}

TEST_CASE("a chat that has all private characters is refused where typed tokens are hidden") {
  RowFixture f;
  f.options.no_special_in_content = true;
  std::string all;
  for (int i = 0; i < 64 * 64; ++i) {
    all += "\xf4\x80";
    all += static_cast<char>(0x80 + i / 64);
    all += static_cast<char>(0x80 + i % 64);
  }
  f.refused(R"({"messages": [{"role": "assistant", "content": ")" + all + R"("}]})",
            {"4096 private characters"});
}
