// Chats, templates, and what is trained of them in brackets.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <string>

#include "base/error.h"
#include "data/chat/mask.h"
#include "support/has.h"

namespace hearth::test {

inline const std::string kChatml =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
// Qwen3's way: reasoning stays behind the last question only.
inline const std::string kThinking =
    "{% set ns = namespace(last=0) %}{% for m in messages %}{% if m.role == 'user' %}"
    "{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content and loop.index0 > ns.last %}<think>{{ m.reasoning_content }}</think>"
    "{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

inline Chat chat(const std::string& messages) {
  return read_chat(parse_json("[" + messages + "]", "chat"), "chat");
}

inline std::string turn(const std::string& role, const std::string& content,
                        const std::string& more = "") {
  return R"({"role": ")" + role + R"(", "content": ")" + content + "\"" + more + "}";
}

inline const std::string kTwo = turn("user", "Q1") + "," + turn("assistant", "A1") + "," +
                                turn("user", "Q2") + "," + turn("assistant", "A2");
inline const std::string kReasoned =
    turn("user", "Q1") + "," + turn("assistant", "A1", R"(, "reasoning_content": "R1")") + "," +
    turn("user", "Q2") + "," + turn("assistant", "A2", R"(, "reasoning_content": "R2")");

inline TrainedChat train(const std::string& source, const Chat& of, TrainOn on = TrainOn::assistant,
                         int64_t steps = kMostSteps) {
  return render_trained(ChatTemplate(source, "t", Json(), ""), of, on, "FILE:7", steps);
}

// The text with the trained spans in [ ].
inline std::string marked(const TrainedChat& trained) {
  std::string text = trained.text;
  size_t last = 0;
  for (const TextSpan& span : trained.trained) {
    CHECK(span.begin < span.end);
    CHECK((span.begin > last || last == 0));
    last = span.end;
  }
  for (auto span = trained.trained.rbegin(); span != trained.trained.rend(); ++span) {
    text.insert(span->end, "]");
    text.insert(span->begin, "[");
  }
  return text;
}

inline std::string refusal(const std::string& source, const Chat& of,
                           TrainOn on = TrainOn::assistant, int64_t steps = kMostSteps) {
  try {
    return "trained " + marked(train(source, of, on, steps));
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::input);
    CHECK(std::string(error.what()).starts_with("FILE:7: "));
    return error.what();
  }
}

}  // namespace hearth::test
