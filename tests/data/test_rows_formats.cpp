// Prompt and completion, alpaca, sharegpt, tools: what each row becomes.
#include "data/row_fixture.h"
#include "data/rows/chat_rows.h"
#include "support/test_paths.h"

using namespace hearth;
using namespace hearth::test;

namespace {

std::string chatml(const std::vector<std::pair<std::string, std::string>>& turns) {
  std::string text;
  for (const auto& [role, content] : turns) text += "<S>" + role + "\n" + content + "</S>\n";
  return text;
}

Json row(const std::string& text) { return parse_json(text, "row"); }

}  // namespace

TEST_CASE("prompt and completion as texts are encoded as one text") {
  RowFixture f;
  const std::string line = R"({"prompt": "2+2=", "completion": "4"})";
  Sample sample = f.read_row(line);
  CHECK(sample.text == "2+2=4");
  CHECK(ids_as_text(sample) == "2+2=4</S>");
  CHECK(trained_text(sample) == "4</S>");
  CHECK(ids_as_text(f.read_row(R"({"prompt": "a", "completion": "b<|im_end|>"})")) == "ab</S>");
  CHECK(trained_text(f.read_row(R"({"prompt": "a", "completion": ""})")) == "</S>");
  CHECK(trained_text(f.read_row(R"({"prompt": "", "completion": "ab"})")) == "b</S>");

  for (const TrainOn on : {TrainOn::assistant, TrainOn::last, TrainOn::completion}) {
    f.options.train_on = on;
    CHECK(trained_text(f.read_row(line)) == "4</S>");
  }
  f.options.train_on = TrainOn::all;
  CHECK(trained_text(f.read_row(line)) == "+2=4</S>");
}

TEST_CASE("a token that holds the end of the prompt and the start of the completion is trained") {
  RowFixture f;
  f.options.model = test_data("/tokenizer/qwen");
  const Tokenizer tokenizer(f.options.model);
  const std::string prompt = "Hello\n", completion = "\n\nworld";
  const Sample sample =
      f.read_row(Json(JsonObject{{"prompt", prompt}, {"completion", completion}}).dump());
  const Encoding whole = tokenizer.encode(prompt + completion);
  REQUIRE(sample.ids.size() == whole.ids.size() + 1);
  bool straddles = false;
  for (size_t i = 0; i < whole.ids.size(); ++i) {
    CHECK(sample.ids[i] == whole.ids[i]);
    CHECK((sample.labels[i] != kIgnoredLabel) == (whole.spans[i].end > prompt.size()));
    straddles |= whole.spans[i].begin < prompt.size() && whole.spans[i].end > prompt.size();
  }
  CHECK(straddles);
  CHECK(sample.labels.back() == tokenizer.end_id());
}

TEST_CASE("prompt and completion as messages train what answers") {
  RowFixture f;
  const std::string line =
      R"({"prompt": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"},)"
      R"( {"role": "user", "content": "R"}], "completion": [{"role": "assistant", "content": "B"}]})";
  f.options.train_on = TrainOn::completion;
  const Sample sample = f.read_row(line);
  CHECK(ids_as_text(sample) ==
        chatml({{"user", "Q"}, {"assistant", "A"}, {"user", "R"}, {"assistant", "B"}}));
  CHECK(trained_text(sample) == "B</S>\n");
  f.options.train_on = TrainOn::assistant;
  CHECK(trained_text(f.read_row(line)) == "A</S>\nB</S>\n");
  const Chat chat = read_completion_row(row(line), "row");
  CHECK(chat.prompt_messages == 3);
  CHECK(chat.messages.size() == 4);
}

TEST_CASE("a post-processor that adds the end token: it stands there once") {
  RowFixture f;
  Json tokenizer = parse_json(read_file(f.directory / "tokenizer.json"), "tokenizer.json");
  const auto adds = [&](const std::string& pieces) {
    tokenizer["post_processor"] =
        parse_json(R"({"type": "TemplateProcessing", "single": [)" + pieces + R"(], "pair": [],)" +
                       R"( "special_tokens": {"<|im_end|>": {"id": "<|im_end|>", "ids": [258],)" +
                       R"( "tokens": ["<|im_end|>"]}}})",
                   "post_processor");
    f.file("tokenizer.json", tokenizer.dump());
  };
  const std::string a = R"({"Sequence": {"id": "A", "type_id": 0}})";
  const std::string end = R"({"SpecialToken": {"id": "<|im_end|>", "type_id": 0}})";
  adds(a + "," + end);
  for (const char* row : {R"({"text": "ab"})", R"({"prompt": "a", "completion": "b"})"}) {
    const Sample sample = f.read_row(row);
    CHECK(ids_as_text(sample) == "ab</S>");
    CHECK(trained_text(sample) == "b</S>");
  }
  adds(end + "," + a);  // one at the beginning ends nothing
  CHECK(ids_as_text(f.read_row(R"({"text": "ab"})")) == "</S>ab</S>");
}

TEST_CASE("alpaca rows") {
  RowFixture f;
  Sample sample = f.read_row(R"({"instruction": "Add", "input": "1 2", "output": "3"})");
  CHECK(ids_as_text(sample) == chatml({{"user", "Add\n1 2"}, {"assistant", "3"}}));
  CHECK(trained_text(sample) == "3</S>\n");
  const std::string plain = chatml({{"user", "Hi"}, {"assistant", "Ho"}});
  CHECK(ids_as_text(f.read_row(R"({"instruction": "Hi", "input": "", "output": "Ho"})")) == plain);
  CHECK(ids_as_text(f.read_row(R"({"instruction": "Hi", "input": null, "output": "Ho"})")) ==
        plain);
  CHECK(ids_as_text(f.read_row(R"({"instruction": "", "input": "Hi", "output": "Ho"})")) == plain);

  const std::string line =
      R"({"instruction": "C", "output": "D", "system": "Be.", "history": [["A", "B"], ["E", "F"]]})";
  sample = f.read_row(line);
  CHECK(ids_as_text(sample) == chatml({{"system", "Be."},
                                       {"user", "A"},
                                       {"assistant", "B"},
                                       {"user", "E"},
                                       {"assistant", "F"},
                                       {"user", "C"},
                                       {"assistant", "D"}}));
  // The output completes what stands before it.
  CHECK(trained_text(sample) == "D</S>\n");
  for (const TrainOn on : {TrainOn::last, TrainOn::completion}) {
    f.options.train_on = on;
    CHECK(trained_text(f.read_row(line)) == "D</S>\n");
  }
  f.options.train_on = TrainOn::assistant;
  CHECK(trained_text(f.read_row(line)) == "B</S>\nF</S>\nD</S>\n");
  f.options.train_on = TrainOn::automatic;
  // The text column of some copies makes it two kinds; --format decides.
  const std::string both = R"({"instruction": "Hi", "output": "Ho", "text": "Hi Ho"})";
  f.refused(both, {"text and instruction and output", "the row format"});
  f.options.format = RowFormat::alpaca;
  CHECK(ids_as_text(f.read_row(both)) == plain);
}

TEST_CASE("sharegpt rows") {
  const RowFixture f;
  const Sample sample = f.read_row(
      R"({"conversations": [{"from": "human", "value": "Q"}, {"from": "gpt", "value": "A"},)"
      R"( {"from": "user", "value": "R"}, {"from": "assistant", "value": "B"}],)"
      R"( "system": "Be.", "tools": ""})");
  CHECK(ids_as_text(sample) == chatml({{"system", "Be."},
                                       {"user", "Q"},
                                       {"assistant", "A"},
                                       {"user", "R"},
                                       {"assistant", "B"}}));
  CHECK(trained_text(sample) == "A</S>\nB</S>\n");
  CHECK(ids_as_text(f.read_row(
            R"({"conversations": [{"role": "user", "content": "Q"},)"
            R"( {"role": "assistant", "content": [{"type": "text", "text": "A"}]}]})")) ==
        chatml({{"user", "Q"}, {"assistant", "A"}}));
}

TEST_CASE("calls of functions in sharegpt rows become tool calls") {
  const Chat chat = read_sharegpt_row(
      row(R"({"conversations": [{"from": "system", "value": "S"}, {"from": "human", "value": "Q"},
          {"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {\"x\": [1, 2.50]}}"},
          {"from": "observation", "value": "3"}, {"from": "tool", "value": "4"},
          {"from": "function_call", "value": "[{\"name\": \"g\", \"arguments\": \"{}\"}, {\"name\": \"h\"}]"},
          {"from": "gpt", "value": "A"}], "tools": "[{\"name\": \"f\"}]"})"),
      "row");
  CHECK(Json(chat.messages).dump() ==
        row(R"([{"role":"system","content":"S"},{"role":"user","content":"Q"},)"
            R"({"role":"assistant","content":"","tool_calls":[{"type":"function",)"
            R"("function":{"name":"f","arguments":{"x":[1,2.5]}}}]},)"
            R"({"role":"tool","content":"3"},{"role":"tool","content":"4"},)"
            R"({"role":"assistant","content":"","tool_calls":[{"type":"function",)"
            R"("function":{"name":"g","arguments":"{}"}},{"type":"function",)"
            R"("function":{"name":"h","arguments":{}}}]},{"role":"assistant","content":"A"}])")
            .dump());
  CHECK(chat.tools.dump() == R"([{"name": "f"}])");
}

TEST_CASE("messages keep what a template may ask for") {
  const std::string messages =
      R"([{"role":"user","content":"Q","name":"Ann"},{"role":"assistant","tool_calls":[{"id":"1",)"
      R"("type":"function","function":{"name":"f","arguments":{"b":1,"a":2}}}]},)"
      R"({"role":"tool","tool_call_id":"1","content":"3"},)"
      R"({"role":"assistant","content":"A","reasoning_content":"hm"}])";
  const Chat chat = read_messages_row(
      row(R"({"messages": )" + messages + R"(, "tools": [{"type": "function"}]})"), "row");
  CHECK(Json(chat.messages).dump() == row(messages).dump());
  CHECK(chat.tools.dump() == R"([{"type": "function"}])");
  CHECK(chat.prompt_messages == 0);
}

TEST_CASE("formats that are forced read their keys and no others") {
  RowFixture f;
  const std::string row =
      R"({"text": "t", "messages": [{"role": "assistant", "content": "m"}], "prompt": "p",)"
      R"( "completion": "c", "instruction": "i", "output": "o", "input_ids": [1, 2],)"
      R"( "conversations": [{"from": "gpt", "value": "g"}]})";
  const std::pair<RowFormat, std::string> expected[] = {
      {RowFormat::text, "t</S>"},
      {RowFormat::messages, chatml({{"assistant", "m"}})},
      {RowFormat::completion, "pc</S>"},
      {RowFormat::alpaca, chatml({{"user", "i"}, {"assistant", "o"}})},
      {RowFormat::sharegpt, chatml({{"assistant", "g"}})},
      {RowFormat::tokens, "\x01\x02"}};
  for (const auto& [format, text] : expected) {
    f.options.format = format;
    CHECK(ids_as_text(f.read_row(row)) == text);
  }
}
