#include "data/row_fixture.h"
#include "support/test_paths.h"

using namespace hearth;
using namespace hearth::test;

TEST_CASE("chats train the turns of the assistant") {
  RowFixture fixture;
  const std::string chat =
      R"({"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"},)"
      R"( {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]},)"
      R"( {"role": "assistant", "content": "B"}], "tools": null, "text": null})";
  auto samples = fixture.read_text(chat);
  REQUIRE(samples.size() == 1);
  CHECK(ids_as_text(samples[0]) ==
        "<S>user\nQ</S>\n<S>assistant\nA</S>\n<S>user\nxy</S>\n<S>assistant\nB</S>\n");
  CHECK(trained_text(samples[0]) == "A</S>\nB</S>\n");
  for (size_t i = 0; i < samples[0].ids.size(); ++i) {
    const int32_t label = samples[0].labels[i];
    CHECK((label == kIgnoredLabel || label == samples[0].ids[i]));
  }

  fixture.options.train_on = TrainOn::all;
  samples = fixture.read_text(chat);
  CHECK(trained_text(samples[0]) == ids_as_text(samples[0]).substr(3));
}

TEST_CASE("a turn that says so is not trained, in every format and for every choice of turns") {
  RowFixture fixture;
  const auto turn = [](const std::string& role, const std::string& text, const std::string& more) {
    return R"({"role": ")" + role + R"(", "content": ")" + text + "\"" + more + "}";
  };
  const std::string off = R"(, "train": false)", on = R"(, "train": true)",
                    none = R"(, "weight": 0)", one = R"(, "weight": 1)";
  const auto chat = [&](const std::string& first, const std::string& second,
                        const std::string& user = "") {
    return R"({"messages": [)" + turn("user", "Q", user) + ", " + turn("assistant", "A", first) +
           ", " + turn("user", "R", "") + ", " + turn("assistant", "B", second) + "]}";
  };
  const std::string whole =
      "<S>user\nQ</S>\n<S>assistant\nA</S>\n<S>user\nR</S>\n"
      "<S>assistant\nB</S>\n";
  for (const std::string& mark : {off, none}) {
    CHECK(ids_as_text(fixture.read_row(chat(mark, ""))) == whole);
    CHECK(trained_text(fixture.read_row(chat(mark, ""))) == "B</S>\n");
    CHECK(trained_text(fixture.read_row(chat("", mark))) == "A</S>\n");
    CHECK(trained_text(fixture.read_row(chat("", on, mark))) == "A</S>\nB</S>\n");
    CHECK(trained_text(fixture.read_row(chat(one, "", one))) == "A</S>\nB</S>\n");
    fixture.refused(chat(mark, mark), {"messages: no turn would be trained: every turn"});
    fixture.options.train_on = TrainOn::last;
    CHECK(trained_text(fixture.read_row(chat(mark, ""))) == "B</S>\n");
    fixture.refused(chat("", mark), {"no turn would be trained: the last turn"});
    fixture.options.train_on = TrainOn::all;  // without the header of a turn, too
    CHECK(trained_text(fixture.read_row(chat(mark, "", mark))) ==
          "<S>user\nR</S>\n<S>assistant\nB</S>\n");
    fixture.options.train_on = TrainOn::automatic;

    // Prompt and completion: everything after the prompt but the turn.
    const std::string completion = R"({"prompt": [)" + turn("user", "Q", "") +
                                   R"(], "completion": [)" + turn("assistant", "A", mark) + ", " +
                                   turn("user", "R", "") + ", " + turn("assistant", "B", "") + "]}";
    CHECK(trained_text(fixture.read_row(completion)) == "<S>user\nR</S>\n<S>assistant\nB</S>\n");
    // sharegpt, with a system turn put before the others.
    const std::string conversations =
        R"({"system": "S", "conversations": [{"from": "human", "value": "Q"},)"
        R"( {"from": "gpt", "value": "A")" +
        mark + R"(}, {"from": "human", "value": "R"}, {"from": "gpt", "value": "B"}]})";
    CHECK(trained_text(fixture.read_row(conversations)) == "B</S>\n");
  }
}

TEST_CASE("marks of a turn that mean nothing are refused with their place") {
  const RowFixture fixture;
  const auto chat = [](const std::string& more) {
    return R"({"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", )"
           R"("content": "A", )" +
           more + "}]}";
  };
  fixture.refused(chat(R"("train": 0)"), {"messages[1].train: expected true or false"});
  fixture.refused(chat(R"("train": "no")"), {"messages[1].train: expected true or false"});
  fixture.refused(chat(R"("weight": 0.5)"), {"messages[1].weight: expected 0 or 1"});
  fixture.refused(chat(R"("weight": false)"), {"messages[1].weight: expected 0 or 1"});
  fixture.refused(chat(R"("weight": 1, "train": false)"), {"train and weight contradict"});
  CHECK(trained_text(fixture.read_row(chat(R"("train": null, "weight": null)"))) == "A</S>\n");
}

TEST_CASE("a token that covers a part of a trained span is trained") {
  RowFixture fixture;
  fixture.options.model = test_data("/tokenizer/qwen");
  const Tokenizer tokenizer(fixture.options.model);
  // The newline of the header and those of the content are one token of that tokenizer.
  const auto samples =
      fixture.read_text(R"({"messages": [{"role": "assistant", "content": "\n\nHello   world"}]})");
  const Sample& sample = samples.at(0);
  const std::string header = "<|im_start|>assistant\n";
  const auto flags = sample.trained();
  bool straddles = false;
  for (size_t i = 0; i < flags.size(); ++i) {
    CHECK((flags[i] != 0) == (sample.spans[i].end > header.size()));
    straddles |= sample.spans[i].begin < header.size() && sample.spans[i].end > header.size();
  }
  CHECK(straddles);
  CHECK(tokenizer.decode(sample.ids) == sample.text);
}

TEST_CASE("chats need a template that tells their turns, other rows do not") {
  RowFixture fixture;
  const std::string chat = R"({"messages": [{"role": "assistant", "content": "A"}]})";
  const std::string other = "{{ messages[0].content }}";
  fixture.file("chat_template.jinja", other);
  CHECK(has(fixture.refusal(chat), "the trained turns last works"));
  CHECK(fixture.read_text("{\"text\": \"a\"}").size() == 1);
  fixture.options.chat_template = "chatml";
  CHECK(fixture.read_text(chat).size() == 1);
  fixture.options.chat_template = "llama3";
  CHECK(has(fixture.refusal(chat, "rows.jsonl", ExitCode::usage), "llama3"));

  // The file counts before the configuration; a list holds a default.
  fixture.options.chat_template = "";
  fixture.file("chat_template.jinja",
               "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + "
               "message.content + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}"
               "{{ '<|im_start|>assistant\\n' }}{% endif %}");
  CHECK(fixture.read_text(chat).size() == 1);
  remove_file(fixture.directory / "chat_template.jinja");
  const auto config = [&](const Json& chat_template) {
    Json json = parse_json(read_file(test_data("/tokenizer/qwen/tokenizer_config.json")), "");
    if (chat_template.is_array() && !chat_template.as_array().empty()) {
      Json entry = chat_template.as_array()[0];
      if (entry.find("template") == nullptr) entry["template"] = *json.find("chat_template");
      json["chat_template"] = JsonArray{entry};
    } else {
      json["chat_template"] = chat_template;
    }
    fixture.file("tokenizer_config.json", json.dump());
  };
  config(JsonArray{JsonObject{{"name", "default"}}});
  CHECK(fixture.read_text(chat).size() == 1);
  config(JsonArray{JsonObject{{"name", "tool_use"}}});
  CHECK(has(fixture.refusal(chat), "named 'default'"));
  config(JsonArray{});
  CHECK(has(fixture.refusal(chat), "named 'default'"));
  config(7);
  CHECK(has(fixture.refusal(chat), "chat_template"));
  config("{% if %}");
  CHECK(has(fixture.refusal(chat),
            "tokenizer_config.json: chat_template, line 1: expected an expression"));
  config(nullptr);
  CHECK(has(fixture.refusal(chat), "no chat template"));
}
