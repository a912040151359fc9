// What is trained of a chat, by the rule of mask.h.
#include "data/mask_fixture.h"

using namespace hearth;
using namespace hearth::test;

TEST_CASE("turns are trained from behind their header to their end") {
  const TrainedChat trained = train(kChatml, chat(kTwo));
  CHECK(marked(trained) ==
        "<|im_start|>user\nQ1<|im_end|>\n<|im_start|>assistant\n[A1<|im_end|>\n]"
        "<|im_start|>user\nQ2<|im_end|>\n<|im_start|>assistant\n[A2<|im_end|>\n]");
  CHECK(trained.note.empty());
  CHECK(
      marked(train("{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
                   "{% else %} {{ m.content }}</s>{% endif %}{% endfor %}",
                   chat(kTwo))) == "[INST] Q1 [/INST][ A1</s>][INST] Q2 [/INST][ A2</s>]");
}

TEST_CASE("--train-on last, completion and all") {
  CHECK(marked(train(kChatml, chat(kTwo), TrainOn::last))
            .ends_with("A1<|im_end|>\n<|im_start|>user\nQ2<|im_end|>\n<|im_start|>assistant\n[A2<|"
                       "im_end|>\n]"));
  CHECK(marked(train(kChatml, chat(kTwo), TrainOn::completion)) ==
        marked(train(kChatml, chat(kTwo), TrainOn::last)));
  const TrainedChat all = train(kChatml, chat(kTwo), TrainOn::all);
  CHECK(marked(all) == "[" + all.text + "]");
  Chat prompted = chat(kTwo);
  prompted.prompt_messages = 1;
  CHECK(marked(train(kChatml, prompted, TrainOn::automatic)) ==
        "<|im_start|>user\nQ1<|im_end|>\n<|im_start|>assistant\n[A1<|im_end|>\n"
        "<|im_start|>user\nQ2<|im_end|>\n<|im_start|>assistant\nA2<|im_end|>\n]");
  CHECK(marked(train(kChatml, prompted, TrainOn::assistant)) == marked(train(kChatml, chat(kTwo))));
  const Chat asks = chat(kTwo + "," + turn("user", "Q3"));
  CHECK(marked(train(kChatml, asks, TrainOn::last))
            .ends_with("[A2<|im_end|>\n]<|im_start|>user\nQ3<|im_end|>\n"));
}

TEST_CASE("a prompt that opens a reasoning block: from where it and the text part") {
  const std::string source =
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}"
      "{% if add_generation_prompt %}<assistant><think>{% endif %}";
  CHECK(marked(train(source, chat(kTwo))) ==
        "<user>Q1</s><assistant>[A1</s>]<user>Q2</s><assistant>[A2</s>]");
  // The two part within a character of the text: it is trained as a whole.
  CHECK(marked(train(source, chat(turn("user", "Q") + "," + turn("assistant", "<thi")))) ==
        "<user>Q</s><assistant><thi[</s>]");
  const std::string other =
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}"
      "{% if add_generation_prompt %}<assistant>é{% endif %}";
  CHECK(marked(train(other, chat(turn("user", "Q") + "," + turn("assistant", "è")))) ==
        "<user>Q</s><assistant>[è</s>]");
}

TEST_CASE("templates that rewrite earlier turns: they are trained as they stand, with a note") {
  const TrainedChat trained = train(kThinking, chat(kReasoned));
  CHECK(marked(trained) ==
        "<|im_start|>user\nQ1<|im_end|>\n<|im_start|>assistant\n[A1<|im_end|>\n]"
        "<|im_start|>user\nQ2<|im_end|>\n<|im_start|>assistant\n"
        "[<think>R2</think>A2<|im_end|>\n]");
  CHECK(has(trained.note, "rewrites earlier turns"));
  const TrainedChat last = train(kThinking, chat(kReasoned), TrainOn::last);
  CHECK(
      marked(last).ends_with("A1<|im_end|>\n<|im_start|>user\nQ2<|im_end|>\n"
                             "<|im_start|>assistant\n[<think>R2</think>A2<|im_end|>\n]"));
  CHECK(last.note.empty());
  // The last turn itself is rewritten by a question behind it: that is left out.
  const TrainedChat cut =
      train(kThinking, chat(kReasoned + "," + turn("user", "Q3")), TrainOn::last);
  CHECK(marked(cut) == marked(last));
  CHECK(has(cut.note, "left out"));
}

TEST_CASE("where turns cannot be told apart, nothing is guessed") {
  // By index, not by a loop over the messages; earlier turns lose their end.
  const std::string by_index =
      "{% for i in range(messages|length) %}{{ messages[i].role }}: {{ messages[i].content }}"
      "{% if i + 1 == messages|length %}<end>{% endif %}\n{% endfor %}"
      "{% if add_generation_prompt %}assistant: {% endif %}";
  CHECK(has(refusal(by_index, chat(kTwo)), "the trained turns last works"));
  CHECK(marked(train(by_index, chat(kTwo), TrainOn::last)) ==
        "user: Q1assistant: A1user: Q2assistant: [A2<end>]");
  // A turn in two pieces of the text.
  const std::string twice =
      "{% for m in messages %}{{ m.content[0] }}{% endfor %}|{% for m in messages %}"
      "{{ m.content }},{% endfor %}";
  CHECK(has(refusal(twice, chat(kTwo)), "the trained turns last works"));
  // The question is written in the turn of the answer.
  const std::string pairs =
      "{% for m in messages %}{% if m.role == 'assistant' %}Q {{ loop.previtem.content }} A "
      "{{ m.content }};{% endif %}{% endfor %}";
  CHECK(has(refusal(pairs, chat(kTwo)), "text of other turns"));
  CHECK(marked(train(pairs, chat(kTwo), TrainOn::last)) == "Q Q1 A A1;Q Q2 A [A2;]");
  // The next question is written in the turn of the answer before.
  const std::string ahead =
      "{% for m in messages %}{% if m.role == 'assistant' %}A {{ m.content }} "
      "{{ loop.nextitem.content if not loop.last else '' }};{% endif %}{% endfor %}";
  CHECK(has(refusal(ahead, chat(kTwo)), "the trained turns last works"));
}

TEST_CASE("the trained turns last works where turns cannot be told apart") {
  const auto last = [](const std::string& source, const std::string& messages) {
    return marked(train(source, chat(messages), TrainOn::last));
  };
  // In several places, with what others said between them: the last one.
  const std::string twice =
      "{% for m in messages %}{{ m.content[0] }}{% endfor %}|{% for m in messages %}"
      "{{ m.content }},{% endfor %}";
  CHECK(last(twice, kTwo) == "QAQA|Q1,A1,Q2,[A2,]");
  CHECK(has(train(twice, chat(kTwo), TrainOn::last).note,
            "only the last occurrence of its own text"));
  // The newest message first; the same words in other turns are not this turn.
  const std::string same = turn("user", "A2 or A1?") + "," + turn("assistant", "A2") + "," +
                           turn("user", "So?") + "," + turn("assistant", " A2 ");
  CHECK(last("{% for i in range(messages|length - 1, -1, -1) %}<{{ messages[i].content | trim }}>"
             "{% endfor %}",
             same) == "<[A2]><So?><A2><A2 or A1?>");
  // The question is repeated behind the answer.
  CHECK(last("{% for i in range(messages|length) %}{{ messages[i].content }}. {% endfor %}"
             "({{ messages[-2].content }})",
             kTwo) == "Q1. A1. Q2. [A2]. (Q2)");
  // Another content raises.
  CHECK(
      last("{% for m in messages %}{% if m.content == '0' %}{{ raise_exception('no') }}{% endif %}"
           "{% if loop.last %}{{ messages[0].content }}:{% endif %}{{ m.content }},{% endfor %}",
           kTwo) == "Q1,A1,Q2,Q1:[A2,]");
  // Nothing of the text is this turn alone: said, not guessed.
  CHECK(has(refusal("{% for m in messages %}{{ m.content | upper }}{% endfor %}"
                    "{% for m in messages %}{{ m.content | upper }}{% endfor %}",
                    chat(turn("user", "q") + "," + turn("assistant", "a")), TrainOn::last),
            "mixes it with text of other turns"));
}

TEST_CASE("turns that must not be trained are taken out of what every rule finds") {
  const std::string tagged =
      "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}"
      "{{ m.content }}{% endgeneration %}</s>{% else %}{{ m.content }}{% endif %}{% endfor %}";
  Chat two = chat(kTwo), reasoned = chat(kReasoned);
  two.untrained = reasoned.untrained = {false, true, false, false};
  CHECK(marked(train(tagged, two)) == "<user>Q1<assistant>A1</s><user>Q2<assistant>[A2]</s>");
  // Reasoning is dropped from the first turn, which is found by its piece.
  const std::string thinking = marked(train(kThinking, reasoned));
  CHECK(thinking.find("[A1") == std::string::npos);
  CHECK(thinking.find("[<think>R2</think>A2<|im_end|>") != std::string::npos);
  two.untrained = {false, false, false, true};
  CHECK(marked(train(tagged, two)) == "<user>Q1<assistant>[A1]</s><user>Q2<assistant>A2</s>");
  CHECK(has(refusal(tagged, two, TrainOn::last), "the last turn of the assistant has"));
  two.untrained = {false, true, false, true};
  CHECK(has(refusal(kChatml, two), "every turn of the assistant has \"train\": false"));
  // A template that hides where the turn is.
  two.untrained = {false, true, false, false};
  const std::string twice =
      "{% for m in messages %}{{ m.content[0] }}{% endfor %}|{% for m in messages %}"
      "{{ m.content }},{% endfor %}";
  CHECK(has(refusal(twice, two, TrainOn::all), "messages[1]: the chat template hides where"));
}

TEST_CASE("generation tags win") {
  const std::string tagged =
      "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}"
      "{{ m.content }}{% endgeneration %}</s>{% else %}{{ m.content }}{% endif %}{% endfor %}";
  CHECK(marked(train(tagged, chat(kTwo))) ==
        "<user>Q1<assistant>[A1]</s><user>Q2<assistant>[A2]</s>");
  CHECK(marked(train(tagged, chat(kTwo), TrainOn::last)) ==
        "<user>Q1<assistant>A1</s><user>Q2<assistant>[A2]</s>");
  const std::string hidden =
      "{% macro say(t) %}{% generation %}{{ t }}{% endgeneration %}{% endmacro %}"
      "{% for m in messages %}<{{ m.role }}>{{ say(m.content) }}{% endfor %}";
  CHECK(has(refusal(hidden, chat(kTwo)), "the trained turns last works"));
  CHECK(marked(train(hidden, chat(kTwo), TrainOn::last)).ends_with("<user>Q2[<assistant>A2]"));
}

TEST_CASE("generation tags win for completions, too") {
  const std::string tagged =
      "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}"
      "{{ m.content }}{% endgeneration %}</s>{% else %}{{ m.content }}{% endif %}{% endfor %}";
  Chat asked = chat(kTwo);
  asked.prompt_messages = 3;
  CHECK(marked(train(tagged, asked, TrainOn::automatic)) ==
        "<user>Q1<assistant>A1</s><user>Q2<assistant>[A2]</s>");
  asked.prompt_messages = 1;
  CHECK(marked(train(tagged, asked, TrainOn::automatic)) ==
        "<user>Q1<assistant>[A1]</s><user>Q2<assistant>[A2]</s>");
  Chat more = chat(kTwo + "," + turn("user", "Q3") + "," + turn("assistant", "A3"));
  more.prompt_messages = 3;
  CHECK(marked(train(tagged, more, TrainOn::automatic)) ==
        "<user>Q1<assistant>A1</s><user>Q2<assistant>[A2]</s><user>Q3<assistant>[A3]</s>");
}

TEST_CASE("a chat of many turns: the steps of all renderings are bounded, and told") {
  std::string messages = turn("user", "Q");
  for (int i = 0; i < 60; ++i) messages += "," + turn(i % 2 == 0 ? "assistant" : "user", "A");
  const Chat many = chat(messages);
  const std::string slow =
      "{% for m in messages %}{% for i in range(messages|length * 10) %}{% endfor %}"
      "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
  constexpr int64_t kSteps = 500'000;
  CHECK(has(refusal(slow, many, TrainOn::assistant, kSteps), "too many steps for its turns"));
  CHECK(marked(train(slow, many, TrainOn::last, kSteps)).find('[') != std::string::npos);
}

TEST_CASE("chats that are refused") {
  CHECK(has(refusal(kChatml, chat(turn("user", "Q"))), "messages: no assistant turn"));
  CHECK(has(refusal("{{ raise_exception('no') }}", chat(kTwo)), "refuses this chat: 'no'"));
  CHECK(has(refusal("{{ raise_exception('no') }}", chat(kTwo), TrainOn::last), "'no'"));
  CHECK(has(refusal("{{ messages[9].content }}", chat(kTwo)), "line 1"));
}
