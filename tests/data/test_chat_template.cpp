#include <catch2/catch_test_macros.hpp>

#include "data/chat/jinja_tokens.h"
#include "data/chat/mask.h"
#include "data/chat/plain_chatml.h"

using namespace hearth;

namespace {

const Chat kChat = read_chat(parse_json(R"([{"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."},
    {"role": "user", "content": "?"}, {"role": "assistant", "content": ""}])",
                                        ""),
                             "");

TrainedChat trained(const Chat& chat, TrainOn train_on) {
  const ChatTemplate chatml({"", "chatml", "", false});
  return render_trained(chatml, chat, train_on, "row");
}

std::string trained_part(const TrainedChat& chat, size_t i) {
  return chat.text.substr(chat.trained[i].begin, chat.trained[i].end - chat.trained[i].begin);
}

}  // namespace

TEST_CASE("ChatML text and what is trained in it") {
  const TrainedChat chat = trained(kChat, TrainOn::assistant);
  CHECK(chat.text ==
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
        "<|im_start|>assistant\nHello.<|im_end|>\n<|im_start|>user\n?<|im_end|>\n"
        "<|im_start|>assistant\n<|im_end|>\n");
  REQUIRE(chat.trained.size() == 2);
  CHECK(trained_part(chat, 0) == "Hello.<|im_end|>\n");
  CHECK(trained_part(chat, 1) == "<|im_end|>\n");

  const TrainedChat all = trained(kChat, TrainOn::all);
  CHECK(all.text == chat.text);
  REQUIRE(all.trained.size() == 1);
  CHECK(all.trained[0] == TextSpan{0, static_cast<uint32_t>(all.text.size())});
}

TEST_CASE("spellings of plain ChatML are recognised") {
  const char* spellings[] = {
      "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + "
      "message['content'] +"
      " '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}"
      "{{ '<|im_start|>assistant\\n' }}{% endif %}",
      "{%- for message in messages -%}\n  {{- '<|im_start|>' + message.role + '\\n' + "
      "message.content"
      " + '<|im_end|>\\n' -}}\n{%- endfor -%}\n{%- if add_generation_prompt -%}\n"
      "  {{- '<|im_start|>assistant\\n' -}}\n{%- endif -%}",
      "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% "
      "endif %}"
      "{% for message in messages %}{{'<|im_start|>' + message[\"role\"] + \"\\n\" + "
      "message['content']"
      " + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}"
      "{{ '<|im_start|>assistant\\n' }}{% endif %}",
      // Text between tags; trim_blocks takes the newline after a block, not after an expression.
      "{% for message in messages %}\n<|im_start|>{{ message.role }}\n{{ message.content "
      "}}<|im_end|>\n"
      "{% endfor %}\n{% if add_generation_prompt %}\n<|im_start|>assistant\n{% endif %}\n",
      // Indented blocks; a comment; CRLF.
      "{# ChatML #}\r\n{% for message in messages %}\r\n"
      "{{ ('<|im_start|>' ~ message['role'] ~ '\\n' ~ message['content'] ~ '<|im_end|>\\n') }}\r\n"
      "  {%- endfor %}\r\n"
      "{%- if add_generation_prompt %}{{ '\\n<|im_start|>assistant\\n' }}{% endif %}",
  };
  for (size_t i = 0; i < 4; ++i) CHECK(is_plain_chatml(spellings[i]));
  CHECK_FALSE(is_plain_chatml(spellings[4]));  // its prompt begins with a newline
}

TEST_CASE("templates that write something else are not") {
  const std::string loop =
      "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + "
      "message['content'] + "
      "'<|im_end|>' + '\\n'}}{% endfor %}";
  const std::string prompt =
      "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
  REQUIRE(is_plain_chatml(loop + prompt));
  const std::string others[] = {
      "",
      loop,
      prompt,
      prompt + loop,
      loop + "\n" + prompt + "x",
      loop + "\n\n" + prompt,
      " " + loop + prompt + " x",
      "{{ bos_token }}" + loop + prompt,
      "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\n<|im_end|>\\n' }}{% endif "
      "%}" +
          loop + prompt,
      "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content']"
      " | trim + '<|im_end|>' + '\\n'}}{% endfor %}" +
          prompt,
      "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + "
      "message['content'] +"
      " '<|im_end|>'}}{% endfor %}" +
          prompt,
      "{% for message in messages %}{{'<|im_start|>' + message['role'] + ' \\n' + "
      "message['content'] +"
      " '<|im_end|>' + '\\n'}}{% endfor %}" +
          prompt,
      "{% for message in messages %}{{'<|im_start|>' + message['content'] + '\\n' + "
      "message['role'] +"
      " '<|im_end|>' + '\\n'}}{% endfor %}" +
          prompt,
      "{% for message in messages[1:] %}{{'<|im_start|>' + message['role'] + '\\n' + "
      "message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}" +
          prompt,
      // Without trim the newline after the expression is text.
      "{% for message in messages %}\n{{'<|im_start|>' + message['role'] + '\\n' + "
      "message['content'] +"
      " '<|im_end|>' + '\\n'}}\n{% endfor %}\n" +
          prompt,
      loop + "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n'",
      "{% generation %}" + loop + "{% endgeneration %}" + prompt,
      "{% raw %}" + loop + "{% endraw %}" + prompt,
      "{{ '",
      "{%",
      "{{ 'a' + }}",
      "{#",
      "{{ message }}",
      "{{ message['role }}",
  };
  for (const auto& other : others) {
    INFO(other);
    CHECK_FALSE(is_plain_chatml(other));
  }
}

TEST_CASE("Jinja's white space rules") {
  const auto contents = [](std::string_view text) {
    std::string joined;
    const auto tokens = cut_jinja(text);
    for (const auto& token : tokens.value()) {
      const char* marks[] = {"[", "%", "="};
      joined += marks[static_cast<int>(token.kind)] + token.content + "]";
    }
    return joined;
  };
  CHECK(contents("a\n  {% if x %}\n  b\n{% endif %}\nc\n") == "[a\n]%if x][  b\n]%endif][c]");
  CHECK(contents("a  {%- if x -%}  \n b {{- y -}} \n c") == "[a]%if x][b]=y][c]");
  CHECK(contents("a  {%+ if x +%}\nb") == "[a  ]%if x][\nb]");
  CHECK(contents("  {{ y }}\n  {% z %}") == "[  ]=y][\n]%z]");
  CHECK(contents("{{ '%} }}' }}") == "='%} }}']");
  CHECK(contents("a\n  {# note #}\nb") == "[a\n][b]");
  CHECK(contents("x {% a %} {% b %}") == "[x ]%a][ ]%b]");
  CHECK_FALSE(cut_jinja("{{ 'a }}"));
}
