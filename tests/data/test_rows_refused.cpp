#include "data/row_fixture.h"

using namespace hearth;
using namespace hearth::test;

TEST_CASE("bad rows are named by file, line and field") {
  RowFixture fixture;
  fixture.options.vocabulary = 259;
  const auto refused = [&](const std::string& row, const std::vector<std::string>& parts) {
    fixture.refused(row, parts);
  };
  refused("{\"text\": 3}", {"text", "'3'"});
  refused("{\"text\": null}", {"expected one of the keys"});
  refused("{\"text\": \"\"}", {"no token of this row would be trained"});
  refused("{\"text\": \"a\", \"text\": \"b\"}", {"duplicate key 'text'"});
  refused("{\"text\": \"a\"", {"column"});
  refused("{\"text\": \"a\"} {}", {"column"});
  refused("{\"text\": \"a\xff\"}", {"UTF-8"});
  refused(std::string("{\"text\": \"a\0b\"}", 15), {"NUL"});
  refused("{\"text\": \"\\ud800\"}", {"column"});
  refused("\ufeff{\"text\": \"a\"}", {"byte order mark"});
  refused("[1, 2]", {"found an array"});
  refused("3", {"JSON object"});
  refused("{}", {"expected one of the keys"});
  refused("{\"label\": 1}", {"expected one of the keys"});
  refused("{\"text\": \"a\", \"messages\": []}", {"messages and text", "the row format"});

  refused("{\"messages\": []}", {"messages", "empty"});
  refused("{\"messages\": {}}", {"messages"});
  refused("{\"messages\": [3]}", {"messages[0]"});
  refused("{\"messages\": [{\"content\": \"a\"}]}", {"messages[0].role"});
  refused("{\"messages\": [{\"role\": \"\", \"content\": \"a\"}]}", {"messages[0].role"});
  refused("{\"messages\": [{\"role\": 1, \"content\": \"a\"}]}", {"messages[0].role"});
  refused("{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}", {"no assistant turn"});
  const std::string user = "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, ";
  refused(user + "{\"role\": \"assistant\"}]}", {"messages[1].content"});
  refused(user + "{\"role\": \"assistant\", \"content\": null}]}", {"messages[1].content"});
  refused(user + "{\"role\": \"assistant\", \"content\": 5}]}", {"messages[1].content", "'5'"});
  refused(user + "{\"role\": \"assistant\", \"content\": [{\"type\": \"image\"}]}]}",
          {"messages[1].content[0]"});
  refused(user + "{\"role\": \"assistant\", \"tool_calls\": []}]}", {"messages[1].content"});
  refused("{\"tools\": [7], \"messages\": [{\"role\": \"assistant\", \"content\": \"a\"}]}",
          {"tools[0]", "an object"});

  refused("{\"input_ids\": []}", {"input_ids", "empty"});
  refused("{\"input_ids\": 3}", {"input_ids"});
  refused("{\"input_ids\": [1, 259]}", {"input_ids[1]", "'259'"});
  refused("{\"input_ids\": [-1]}", {"input_ids[0]", "'-1'"});
  refused("{\"input_ids\": [-100]}", {"input_ids[0]"});
  refused("{\"input_ids\": [1.0]}", {"input_ids[0]", "'1.0'"});
  refused("{\"input_ids\": [1e0]}", {"input_ids[0]"});
  refused("{\"input_ids\": [true]}", {"input_ids[0]"});
  refused("{\"input_ids\": [\"1\"]}", {"input_ids[0]"});
  refused("{\"input_ids\": [null]}", {"input_ids[0]"});
  refused("{\"input_ids\": [NaN]}", {"column"});
  refused("{\"input_ids\": [4294967297]}", {"input_ids[0]"});
  refused("{\"input_ids\": [18446744073709551615]}", {"input_ids[0]"});
  refused("{\"input_ids\": [99999999999999999999]}", {"input_ids[0]", "'99999999999999999999'"});
  refused("{\"input_ids\": [[1]]}", {"input_ids[0]"});
  refused("{\"input_ids\": [1, 2], \"labels\": [1]}", {"labels", "1 entries for 2"});
  refused("{\"input_ids\": [1, 2], \"labels\": [1, -1]}", {"labels[1]", "-100"});
  refused("{\"input_ids\": [1, 2], \"labels\": [1, 259]}", {"labels[1]"});
  refused("{\"input_ids\": [1, 2], \"labels\": \"x\"}", {"labels"});
  refused("{\"input_ids\": [1, 2], \"attention_mask\": [1, 0]}", {"attention_mask"});
  refused("{\"input_ids\": [1, 2], \"attention_mask\": [1]}", {"attention_mask"});

  fixture.options.vocabulary = 258;  // fewer rows in the embedding than tokens
  CHECK(has(fixture.refusal("{\"text\": \"a\"}"), "rows.jsonl:1: the tokenizer gives the id 258"));
}

TEST_CASE("bad rows of the other formats are named by field") {
  const RowFixture f;
  // Prompt and completion.
  f.refused(R"({"prompt": "a"})", {"prompt without completion"});
  f.refused(R"({"prompt": 1, "completion": "b"})", {"prompt: expected a string or a list", "'1'"});
  f.refused(R"({"prompt": "a", "completion": {}})", {"completion: expected a string or a list"});
  f.refused(R"({"prompt": "a", "completion": []})", {"completion: expected a string"});
  f.refused(R"({"prompt": [], "completion": "a"})", {"completion: expected a list of messages"});
  f.refused(R"({"prompt": [], "completion": []})", {"prompt", "an empty one"});
  f.refused(R"({"prompt": [{"role": "user", "content": "a"}], "completion": [{"role": "user"}]})",
            {"completion[0].content"});
  f.refused(
      R"({"prompt": [{"role": "user", "content": "a"}], "completion": [{"role": "user", "content": "b"}]})",
      {"completion: no assistant turn"});
  f.refused(R"({"prompt": "a", "completion": "b", "text": "c"})", {"the row format"});

  // Alpaca.
  f.refused(R"({"instruction": "a"})", {"instruction without output"});
  f.refused(R"({"instruction": 1, "output": "b"})", {"instruction: expected a string", "'1'"});
  f.refused(R"({"instruction": "a", "output": ["b"]})", {"output: expected a string", "an array"});
  f.refused(R"({"instruction": "a", "output": "b", "input": 2})", {"input: expected a string"});
  f.refused(R"({"instruction": "a", "output": "b", "system": {}})", {"system: expected a string"});
  f.refused(R"({"instruction": "a", "output": "b", "history": "c"})", {"history: expected a list"});
  f.refused(R"({"instruction": "a", "output": "b", "history": [["c"]]})",
            {"history[0]: expected a pair"});
  f.refused(R"({"instruction": "a", "output": "b", "history": [["c", "d"], ["e", 1]]})",
            {"history[1]: expected a pair"});

  // Sharegpt.
  const auto turns = [](const std::string& list) { return "{\"conversations\": " + list + "}"; };
  f.refused(turns("[]"), {"conversations", "an empty one"});
  f.refused(turns("5"), {"conversations", "'5'"});
  f.refused(turns("[5]"), {"conversations[0]: expected an object with from and value"});
  f.refused(turns(R"([{"value": "a"}])"), {"conversations[0].from"});
  f.refused(turns(R"([{"from": "human"}])"), {"conversations[0].value"});
  f.refused(turns(R"([{"from": "human", "value": ["a"]}])"), {"conversations[0].value"});
  f.refused(turns(R"([{"from": "bing", "value": "a"}])"),
            {"conversations[0].from: expected human", "gpt", "'bing'"});
  f.refused(turns(R"([{"from": "human", "value": "a"}])"), {"no assistant turn"});
  f.refused(turns(R"([{"from": "function_call", "value": "f of 1"}])"),
            {"conversations[0].value: expected the JSON of a call", "'f of 1'"});
  f.refused(turns(R"([{"from": "function_call", "value": "[]"}])"), {"conversations[0].value"});
  f.refused(turns(R"([{"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": 1}"}])"),
            {"conversations[0].value"});
  f.refused(turns(R"([{"role": "user", "content": 1}])"), {"conversations[0].content"});
  f.refused(R"({"conversations": [{"from": "system", "value": "a"}], "system": "b"})",
            {"system: the first turn"});

  // What would train a turn that the row says not to train.
  f.refused(R"({"messages": [{"role": "assistant", "content": "a", "weight": 0}]})",
            {"messages: no turn would be trained"});
  f.read_row(
      turns(R"([{"from": "human", "value": "q", "weight": 0}, {"from": "gpt", "value": "a"}])"));
  f.read_row(R"({"messages": [{"role": "user", "content": "q", "weight": 0.0},)"
             R"( {"role": "assistant", "content": "a", "weight": 1}]})");
  f.refused(turns(R"([{"from": "gpt", "value": "a", "weight": 0}])"),
            {"messages: no turn would be trained"});
  f.refused(R"({"messages": [{"role": "assistant", "content": "a"}], "tools": "f"})", {"tools"});
  f.refused(R"({"messages": [{"role": "assistant", "content": "a"}], "tools": {}})", {"tools"});
}
