// Chats and templates that mix, rewrite or hide turns in ways of their own.
#include "data/mask_fixture.h"
#include "data/tokenizer/builtin_tokenizer.h"
#include "support/temporary_directory.h"

using namespace hearth;
using namespace hearth::test;

namespace {

// What foreign words are marked with.
const std::string kMark = "\xee\x83\xb1";
// By index, not by a loop over the messages.
const std::string kByIndex =
    "{% for i in range(messages|length) %}{{ messages[i].content }}. {% endfor %}";
const std::string kTags =
    "{% for m in messages %}<{{ m.role }}>{% generation %}{{ m.content }}{% endgeneration %}"
    "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";

std::string last(const std::string& source, const std::string& messages) {
  return refusal(source, chat(messages), TrainOn::last);
}
std::string completion(const std::string& source, const std::string& messages, size_t prompt) {
  Chat asked = chat(messages);
  asked.prompt_messages = prompt;
  return refusal(source, asked, TrainOn::completion);
}
std::string pair(const std::string& question, const std::string& answer) {
  return turn("user", question) + "," + turn("assistant", answer);
}

}  // namespace

TEST_CASE("odd masks: turns that begin before the one before ends") {
  const std::string source =
      "{{ 'a' * [0, 1, 10, 5, 20][messages|length] }}{% if false %}{{ messages }}{% endif %}";
  CHECK(has(refusal(source, chat(kTwo)), "mixes turns"));
}

TEST_CASE("odd masks: what others said cannot be followed through the text") {
  const std::string marked_chat = pair("Q1" + kMark, "A1") + "," + pair("Q2", "A2");
  CHECK(has(refusal(kChatml, chat(marked_chat)), "assistant\n[A1<|im_end|>\n]"));
  const std::string reasoned = turn("user", "Q1" + kMark) + "," +
                               turn("assistant", "A1", R"(, "reasoning_content": "R1")") + "," +
                               pair("Q2", "A2");
  CHECK(has(refusal(kThinking, chat(reasoned)), "text of other turns"));
  // Another text where the words are others.
  CHECK(refusal("{% for m in messages %}{{ m.content|length }}{{ m.content }};{% endfor %}",
                chat(kTwo)) == "trained 2Q1;[2A1;]2Q2;[2A2;]");
}

TEST_CASE("odd masks: headers that do not agree with the text") {
  const auto prompted = [](const std::string& prompt) {
    return kThinking.substr(0, kThinking.find("{% if add_generation_prompt")) +
           "{% if add_generation_prompt %}" + prompt + "{% endif %}";
  };
  CHECK(has(refusal(prompted("@"), chat(kReasoned)), "rewrites earlier turns"));
  CHECK(has(refusal(prompted(""), chat(kReasoned)), "note") == false);
  // A prompt that stands before all: no rendering without it is its beginning.
  const std::string before =
      "{% if add_generation_prompt %}now:{% endif %}{% for m in messages %}<{{ m.content }}>"
      "{% endfor %}";
  CHECK(has(refusal(before, chat(kTwo)), "the trained turns last works"));
  CHECK(last(before, kTwo) == "trained <Q1><A1><Q2><[A2>]");
  // One that refuses to end where it is.
  const std::string asks =
      "{% if not add_generation_prompt and messages[-1].role == 'user' %}"
      "{{ raise_exception('asks') }}{% endif %}{% for m in messages %}<{{ m.content }}>{% endfor %}"
      "{% if add_generation_prompt %}!{% endif %}";
  CHECK(has(refusal(asks, chat(kTwo)), "the trained turns last works"));
}

TEST_CASE("odd masks: completions whose prompt is rewritten") {
  const std::string three = kReasoned + "," + pair("Q3", "A3");
  CHECK(has(completion(kThinking, three, 2), "<|im_start|>[user\nQ2"));
  CHECK(has(completion(kByIndex.substr(0, kByIndex.find("{% endfor")) +
                           "{% if i + 1 == messages|length %}<end>{% endif %}{% endfor %}",
                       kTwo, 2),
            "rewrites the prompt"));
  CHECK(has(completion("{% for m in messages %}<{{ m.content }}>{% endfor %}"
                       "({{ messages[0].content }})",
                       kTwo, 1),
            "the trained turns last works"));
  CHECK(completion("{% for m in messages %}<{{ m.content }}>{% endfor %}"
                   "{% if messages|length > 2 %}({{ messages[0].content }}){% endif %}",
                   kTwo, 1)
            .find("writes the prompt after the completion") != std::string::npos);
  // A question behind the last answer is part of the completion.
  CHECK(has(completion(kChatml, kTwo + "," + turn("user", "Q3"), 3),
            "[A2<|im_end|>\n<|im_start|>user\nQ3<|im_end|>\n]"));
}

TEST_CASE("odd masks: generation tags beside other turns") {
  const std::string hidden =
      "{% macro say(t) %}{% generation %}{{ t }}{% endgeneration %}{% endmacro %}"
      "{% for m in messages %}<{{ m.role }}>{{ say(m.content) }}{% endfor %}";
  CHECK(completion(hidden, kTwo, 1) == "trained <user>Q1[<assistant>A1<user>Q2<assistant>A2]");
  CHECK(last(kTags, kTwo + "," + turn("user", "Q3")) ==
        "trained <user>Q1<assistant>A1<user>Q2<assistant>[A2]<user>Q3");
  CHECK(last(kTags, pair("Q", "")) == "trained <user>Q<assistant>");
  // The last turn is rewritten by what follows: the text ends with it, and so do the tags.
  const std::string thinking =
      "{% for m in messages %}<{{ m.role }}>{% generation %}{% if loop.last %}<think>{% endif %}"
      "{{ m.content }}</s>{% endgeneration %}{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}";
  CHECK(has(last(thinking, kTwo + "," + turn("user", "Q3")), "A2</s>]"));
}

TEST_CASE("odd masks: the last turn by its words alone") {
  const std::string ends =
      "{% if messages[-1].role == 'assistant' %}{{ raise_exception('ask') }}{% endif %}";
  const std::string more = "," + turn("user", "Q3");
  CHECK(last(ends + kByIndex, kTwo + more) == "trained Q1. A1. Q2. [A2]. Q3. ");
  // No words, or none of a text.
  const std::string refused = "mixes it with text of other turns";
  CHECK(has(last(ends + kByIndex, pair("Q", "  ") + more), refused));
  CHECK(has(last(ends + kByIndex, pair("Q", "") + more), refused));
  const std::string calls = R"({"role": "assistant", "tool_calls": [{"type": "function",)"
                            R"( "function": {"name": "f", "arguments": {}}}]})";
  CHECK(has(last(ends + kByIndex, turn("user", "Q") + "," + calls + more), refused));
  // They stand in what another said, and nowhere else.
  CHECK(has(last(ends + "{{ messages[0].content }}", pair("A1 x", "A1") + more), refused));
  // By what changes with the content.
  const std::string asking = kByIndex + "{% if messages[-1].role == 'user' %}?{% endif %}";
  CHECK(last(asking, pair("Q", "0")) == "trained Q. [0. ]");
  CHECK(last(asking, pair("Q", "1")) == "trained Q. [1. ]");
  CHECK(last(asking, pair("Q", " ")) == "trained Q. [ . ]");
  CHECK(last(asking, turn("user", "Q") + "," + calls) == "trained Q. [. ]");
}

TEST_CASE("odd masks: words of others with blanks around them, or none") {
  const std::string ends =
      "{% if messages[-1].role == 'assistant' %}{{ raise_exception('ask') }}{% endif %}";
  const std::string calls = R"({"role": "assistant", "tool_calls": [{"type": "function",)"
                            R"( "function": {"name": "f", "arguments": {}}}]})";
  for (const char* blank : {"      x", "x      ", "   x   ", "      "}) {
    CAPTURE(blank);
    const std::string messages =
        turn("user", blank) + "," + calls + "," + pair("Q2", "A2") + "," + turn("user", blank);
    CHECK(has(last(ends + kByIndex, messages), "[A2]"));
  }
}

TEST_CASE("odd masks: the token that ends a turn") {
  const test::TemporaryDirectory directory;
  write_builtin_tokenizer(directory.path());
  const Tokenizer tokenizer(directory.path());
  const std::vector<int32_t> ends{258};
  const auto ended = [&](const std::vector<int32_t>& ids, size_t trained) {
    std::vector<int32_t> labels = ids;
    for (size_t i = trained; i < labels.size(); ++i) labels[i] = -100;
    return ends_turn(ids, labels, ends, tokenizer);
  };
  CHECK(ended({}, 0));
  CHECK(ended({'a', 'b'}, 0));
  CHECK(ended({'a', 258}, 2));
  CHECK(ended({'a', 258, '\n', ' '}, 4));
  CHECK(ended({'a', 258, 'b'}, 2));
  CHECK_FALSE(ended({'a', 258, 'b'}, 3));
  CHECK_FALSE(ended({'a', 'b'}, 2));
  CHECK_FALSE(ended({'\n', ' '}, 2));
}
