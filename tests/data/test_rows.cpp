#include "data/row_fixture.h"

using namespace hearth;
using namespace hearth::test;

TEST_CASE("text rows end with the end token, once") {
  const RowFixture fixture;
  const auto samples = fixture.read_text(
      "{\"text\": \"ab\"}\n{\"text\": \"c<|im_end|>\"}\n\n{\"id\": 7, \"text\": \"d\\n\"}\r\n");
  REQUIRE(samples.size() == 3);
  CHECK(ids_as_text(samples[0]) == "ab</S>");
  CHECK(trained_text(samples[0]) == "b</S>");  // the first token is never a target
  CHECK(samples[0].text == "ab");
  CHECK(samples[0].spans.back() == TextSpan{2, 2});
  CHECK(ids_as_text(samples[1]) == "c</S>");
  CHECK(samples[1].line == 2);
  CHECK(ids_as_text(samples[2]) == "d\n</S>");
  CHECK(samples[2].line == 4);
  CHECK(has(samples[2].file, "rows.jsonl"));
}

TEST_CASE("token rows") {
  RowFixture fixture;
  fixture.options.model = "/no/such/directory";  // not needed for them
  fixture.options.vocabulary = 10;
  const auto samples = fixture.read_text(
      "{\"input_ids\": [1, 2, 3]}\n"
      "{\"input_ids\": [1, 2, 3], \"labels\": [-100, -100, 9]}\n"
      "{\"input_ids\": [4, 0], \"labels\": [-100, -100], \"attention_mask\": [1, 1]}\n");
  REQUIRE(samples.size() == 3);
  CHECK(samples[0].labels == std::vector<int32_t>{1, 2, 3});
  CHECK(samples[1].labels == std::vector<int32_t>{-100, -100, 9});
  CHECK(samples[1].trained() == std::vector<uint8_t>{0, 0, 1});
  CHECK(samples[2].ids == std::vector<int32_t>{4, 0});
}

TEST_CASE("so many bad rows are passed over, one more is an error") {
  RowFixture f;
  const std::string rows = "{\"text\": \"a\"}\n{\"text\": 5}\nnonsense\n{\"input_ids\": [1, 2]}\n";
  f.options.skip_bad_rows = 2;
  const auto samples = f.read_text(rows);
  REQUIRE(samples.size() == 2);
  CHECK(samples[1].line == 4);
  f.options.skip_bad_rows = 1;
  CHECK(has(f.refusal(rows), "rows.jsonl:3"));
  // What is wrong with the model is no bad row.
  remove_file(f.directory / "tokenizer.json");
  f.options.skip_bad_rows = 9;
  CHECK(f.refusal(rows) != "accepted");
}

TEST_CASE("a forced format reads its key and no other") {
  RowFixture fixture;
  fixture.options.format = RowFormat::text;
  CHECK(fixture.read_text("{\"text\": \"a\", \"messages\": 3}").size() == 1);
  CHECK(has(fixture.refusal("{\"messages\": []}"), ":1: text"));
  fixture.options.format = RowFormat::tokens;
  CHECK(has(fixture.refusal("{\"text\": \"a\"}"), ":1: input_ids"));
  fixture.options.format = RowFormat::messages;
  CHECK(has(fixture.refusal("{\"text\": \"a\"}"), ":1: messages"));
}

TEST_CASE("long rows are cut, left out or refused") {
  RowFixture fixture;
  const std::string rows =
      "{\"input_ids\": [1, 2, 3]}\n{\"input_ids\": [1, 2, 3, 4, 5]}\n"
      "{\"input_ids\": [1, 2, 3, 4], \"labels\": [-100, -100, -100, 4]}\n";
  const std::string path = fixture.file("rows.jsonl", rows);
  fixture.options.seq_len = 3;
  RowTotals totals = fixture.totals({path});
  CHECK(totals.rows == 3);
  CHECK(totals.tokens == 9);
  CHECK(totals.trained_tokens == 4);
  CHECK(totals.truncated == 2);
  CHECK(totals.truncated_tokens == 3);
  CHECK(totals.untrained == 1);
  CHECK(fixture.read({path}).at(1).ids == std::vector<int32_t>{1, 2, 3});

  fixture.options.overflow = Overflow::drop;
  totals = fixture.totals({path});
  CHECK(totals.rows == 1);
  CHECK(totals.dropped == 2);

  fixture.options.overflow = Overflow::error;
  CHECK(has(fixture.refusal(rows), "rows.jsonl:2: 5 ids"));

  fixture.options.overflow = Overflow::truncate;
  fixture.options.seq_len = 2;
  const auto samples = fixture.read_text("{\"text\": \"abcd\"}");
  CHECK(ids_as_text(samples[0]) == "ab");
  CHECK(samples[0].spans.size() == 2);
}

TEST_CASE("text needs an end token, chats do not") {
  RowFixture fixture;
  remove_file(fixture.directory / "tokenizer_config.json");
  CHECK(has(fixture.refusal("{\"text\": \"a\"}"), "no eos_token"));
  fixture.options.chat_template = "chatml";
  CHECK(fixture.read_text(R"({"messages": [{"role": "assistant", "content": "A"}]})").size() == 1);
}
