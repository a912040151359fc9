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
  refused("{\"text\": null}", {"none of the keys"});
  refused("{\"text\": \"\"}", {"no token of this row is trained"});
  refused("{\"text\": \"a\", \"text\": \"b\"}", {"duplicate key 'text'"});
  refused("{\"text\": \"a\"", {"column"});
  refused("{\"text\": \"a\"} {}", {"column"});
  refused("{\"text\": \"a\xff\"}", {"UTF-8"});
  refused(std::string("{\"text\": \"a\0b\"}", 15), {"NUL"});
  refused("{\"text\": \"\\ud800\"}", {"column"});
  refused("\ufeff{\"text\": \"a\"}", {"byte order mark"});
  refused("[1, 2]", {"JSON array"});
  refused("3", {"JSON object"});
  refused("{}", {"none of the keys"});
  refused("{\"label\": 1}", {"none of the keys"});
  refused("{\"text\": \"a\", \"messages\": []}", {"messages and text", "--format"});
  refused("{\"prompt\": \"a\", \"completion\": \"b\"}", {"not in this version"});
  refused("{\"instruction\": \"a\", \"input\": \"\", \"output\": \"b\"}", {"not in this version"});
  refused("{\"conversations\": [{\"from\": \"human\", \"value\": \"b\"}]}",
          {"not in this version"});

  refused("{\"messages\": []}", {"messages", "empty"});
  refused("{\"messages\": {}}", {"messages"});
  refused("{\"messages\": [3]}", {"messages[0]"});
  refused("{\"messages\": [{\"content\": \"a\"}]}", {"messages[0].role"});
  refused("{\"messages\": [{\"role\": \"\", \"content\": \"a\"}]}", {"messages[0].role"});
  refused("{\"messages\": [{\"role\": 1, \"content\": \"a\"}]}", {"messages[0].role"});
  refused("{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}",
          {"no turn of the assistant"});
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
  refused("{\"input_ids\": [99999999999999999999]}", {"64 bits"});
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
