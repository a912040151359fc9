// Rows, names of files and values at the edges of what is read.
#include "data/chat/chat_template.h"
#include "data/row_fixture.h"
#include "data/samples/data_files.h"
#include "data/samples/row_key.h"
#include "support/packed.h"
#include "support/raises.h"

using namespace hearth;
using namespace hearth::test;

TEST_CASE("odd rows: members of another kind") {
  const RowFixture f;
  const auto content = [](const std::string& parts) {
    return R"({"messages": [{"role": "assistant", "content": [)" + parts + "]}]}";
  };
  f.read_row(content(R"({"type": "text", "text": "a"}, {"type": "text", "text": "b"})"));
  f.refused(content("5"), {"messages[0].content[0]"});
  f.refused(content(R"({"type": 5, "text": "a"})"), {"messages[0].content[0]", "only parts"});
  f.refused(content(R"({"type": "text", "text": 5})"), {"messages[0].content[0]", "only parts"});
  const auto history = [](const std::string& pair) {
    return R"({"instruction": "a", "output": "b", "history": [)" + pair + "]}";
  };
  f.read_row(history(R"(["q", "a"])"));
  f.refused(history("5"), {"history[0]: expected a pair"});
  f.refused(history(R"([5, "a"])"), {"history[0]: expected a pair"});
  f.refused(history(R"(["q", "a", "x"])"), {"history[0]: expected a pair"});
  const auto call = [](const std::string& value) {
    return R"({"conversations": [{"from": "human", "value": "q"},
        {"from": "function_call", "value": ")" +
           value + R"("}]})";
  };
  const auto one_line = [](std::string row) {
    for (char& c : row) c = c == '\n' ? ' ' : c;
    return row;
  };
  f.refused(one_line(call(R"({\"name\": 5, \"arguments\": {}})")), {"conversations[1].value"});
  f.refused(one_line(call(R"({\"name\": \"\", \"arguments\": {}})")), {"conversations[1].value"});
  const auto mask = [](const std::string& value) {
    return R"({"input_ids": [1, 2], "attention_mask": )" + value + "}";
  };
  f.read_row(mask("null"));
  f.read_row(mask("[1, 1]"));
  for (const char* value : {"5", "\"11\"", "[1, 2]", "[1, 1.0]", "[1, true]", "[1, 1, 1]", "{}"}) {
    f.refused(mask(value), {"attention_mask: expected a 1"});
  }
  RowFixture typed;
  typed.options.format = RowFormat::text;
  CHECK(has(typed.refusal("[1]\n"), "rows.jsonl"));
  CHECK(has(typed.refusal("5\n"), "rows.jsonl:1: "));
}

TEST_CASE("odd rows: files that other programs write") {
  const RowFixture f;
  for (const char* name : {"a.ARROW", "a.feather"}) {
    INFO(name);
    CHECK(has(f.refusal("{\"text\": \"a\"}\n", name), "to_json"));
  }
  CHECK(has(f.refusal("PAR1xxxx", "rows"), "a Parquet file"));
  CHECK(has(f.refusal("ARROW1xx", "rows"), "an Arrow file"));
  CHECK(has(f.refusal(std::string("\xff\xff\xff\xff\x10\0\0\0xx", 10), "rows"), "an Arrow file"));
  // Bytes that only begin so are no text either.
  CHECK_FALSE(has(f.refusal("\xff\xff\xff\xff\x10zzzz", "rows"), "Arrow"));
  CHECK_FALSE(has(f.refusal("\xff\xff\xff\xff", "rows"), "Arrow"));
  make_directory(f.directory / "a.parquet.d");
  CHECK(f.read({f.file("a.parquet.d/rows", "{\"text\": \"a\"}\n")}).size() == 1);
}

TEST_CASE("odd rows: weights of files, and keys of their names") {
  const auto files = [](const std::string& given) {
    return parse_data_files({given}, "--data", true)[0];
  };
  CHECK(files("none.jsonl:2").passes == 2);
  CHECK(files("none.jsonl:2").path == "none.jsonl");
  for (const char* name : {"none.jsonl:2x", "none.jsonl:", "none.jsonl:x", "none.jsonl"}) {
    CHECK(files(name).path == name);
  }
  for (const char* name : {"a:0", "a:-1", "a:1001", "a:nan"}) {
    CHECK(raised_by([&] { files(name); }).code == ExitCode::usage);
  }
  const auto key = [](const std::string& path) { return row_key({1, 2}, {3, 4}, path).hex(); };
  CHECK(key("rows") == key("d.e/other"));
  CHECK(key("a.jsonl.gz") == key("b.JSONL.gz"));
  CHECK(key("a.jsonl") == key("b.jsonl"));
  CHECK(key(".jsonl") == key("b.jsonl"));
  CHECK(key("a.jsonl") != key("a.txt"));
  CHECK(key("a.jsonl") != key("a"));
}

TEST_CASE("odd rows: a text that ends with the end token, with another one behind it") {
  const RowFixture f;
  Json tokenizer = parse_json(read_file(f.directory / "tokenizer.json"), "tokenizer.json");
  tokenizer["post_processor"] = parse_json(
      R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}},
          {"SpecialToken": {"id": "<|im_start|>", "type_id": 0}}], "pair": [],
          "special_tokens": {"<|im_start|>": {"id": "<|im_start|>", "ids": [257],
                             "tokens": ["<|im_start|>"]}}})",
      "post_processor");
  f.file("tokenizer.json", tokenizer.dump());
  CHECK(ids_as_text(f.read_row(R"({"text": "a<|im_end|>"})")) == "a</S><S>");
  CHECK(ids_as_text(f.read_row(R"({"text": "a"})")) == "a<S></S>");
}

TEST_CASE("odd rows: what a template notes is told, once") {
  RowFixture f;
  f.options.chat_template =
      f.file("t.jinja",
             "{% for m in messages %}<{{ m.role }}>{% if loop.last %}!{% endif %}"
             "{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}");
  const std::string row = R"({"messages": [{"role": "user", "content": "Q"},
      {"role": "assistant", "content": "A"}, {"role": "user", "content": "Q"}]})";
  std::string line = row;
  for (char& c : line) c = c == '\n' ? ' ' : c;
  CHECK(f.read_text(line + "\n" + line + "\n").size() == 2);
}

TEST_CASE("odd rows: no length is too much where none is given") {
  for (const Overflow overflow : {Overflow::drop, Overflow::error, Overflow::truncate}) {
    RowFixture f;
    f.options.overflow = overflow;
    f.options.seq_len = 0;
    CHECK(f.read_row(R"({"input_ids": [1, 2, 3]})").ids.size() == 3);
    f.options.seq_len = 3;
    CHECK(f.read_row(R"({"input_ids": [1, 2, 3]})").ids.size() == 3);
  }
}

TEST_CASE("odd rows: blanks between the rows of an array, or nothing else") {
  const RowFixture f;
  const std::string row = R"({"input_ids": [1, 2]})";
  CHECK(f.read({f.file("a.json", "\t[\r" + row + "\t,\r\n" + row + "\t\r]\t")}).size() == 2);
  for (const char* end : {"5}", "5\t", "5\r]", "5\n]", "5,", "5 ]"}) {
    CHECK(has(f.refusal(std::string("[") + end, "a.json"), "a.json:1: "));
  }
  const std::string blanks(33 << 20, ' ');
  CHECK(has(f.refusal(zstd(blanks + "\n" + blanks + "\n[]"), "a.json.zst"), "blank lines"));
}

TEST_CASE("odd rows: dates of templates") {
  const auto refused = [](const std::string& date) {
    return raised_by([&] { ChatTemplate("x", "t", {}, date); }).says("a date YYYY-MM-DD");
  };
  CHECK_FALSE(refused("2024-02-29"));
  for (const char* date : {"2023-02-29", "2024-2-29x", "2024-02-2 ", " 024-02-02", "2024/02/02",
                           "20240-1-01", "2024-13-01", "x"}) {
    INFO(date);
    CHECK(refused(date));
  }
}
