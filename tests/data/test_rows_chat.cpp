#include "data/row_fixture.h"

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

TEST_CASE("a weight of 0 is refused where it asks for something: on turns of the assistant") {
  const RowFixture fixture;
  const auto chat = [](const std::string& user, const std::string& assistant) {
    return R"({"messages": [{"role": "user", "content": "Q")" + user +
           R"(}, {"role": "assistant", "content": "A")" + assistant + "}]}";
  };
  const std::string none = R"(, "weight": 0)", one = R"(, "weight": 1)";
  CHECK(trained_text(fixture.read_row(chat(none, one))) == "A</S>\n");
  fixture.refused(chat(one, none), {"messages[1].weight: weights of turns are not supported"});
}

TEST_CASE("a token that covers a part of a trained span is trained") {
  RowFixture fixture;
  fixture.options.model = HEARTH_TEST_DATA "/tokenizer/qwen";
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
    Json json = parse_json(read_file(HEARTH_TEST_DATA "/tokenizer/qwen/tokenizer_config.json"), "");
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
