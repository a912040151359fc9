#include "data/rows/rows.h"

#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>

#include "base/error.h"
#include "base/file_ops.h"
#include "data/tokenizer/builtin_tokenizer.h"
#include "support/temporary_directory.h"

using namespace hearth;

namespace {

// A model directory with the built-in tokenizer, and data files in it.
struct Fixture {
  test::TemporaryDirectory directory;
  RowOptions options;

  Fixture() {
    write_builtin_tokenizer(directory.path());
    options.model = directory.path();
  }
  std::string file(const std::string& name, std::string_view content) const {
    const std::string path = directory / name;
    write_file_atomically(path, content);
    return path;
  }
  std::vector<Sample> read(const std::vector<std::string>& files) const {
    RowReader reader(files, options);
    std::vector<Sample> samples;
    Sample sample;
    while (reader.next(sample)) samples.push_back(sample);
    return samples;
  }
  std::vector<Sample> read_text(std::string_view content) const {
    return read({file("rows.jsonl", content)});
  }
  // The message that refuses a file of this content.
  std::string refusal(std::string_view content, const std::string& name = "rows.jsonl",
                      ExitCode code = ExitCode::input) const {
    try {
      read({file(name, content)});
    } catch (const Error& error) {
      CHECK(error.code() == code);
      return error.what();
    }
    return "accepted";
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string ids_as_text(const Sample& sample) {
  std::string text;
  for (const int32_t id : sample.ids) {
    text += id == 256 ? "<E>" : id == 257 ? "<S>" : id == 258 ? "</S>" : std::string(1, char(id));
  }
  return text;
}

std::vector<int32_t> ids_of(const TokenStore& store, int64_t row) {
  std::vector<int32_t> ids, labels;
  store.read(row, ids, labels);
  return ids;
}

// The trained tokens in order.
std::string trained_text(const Sample& sample) {
  Sample trained;
  const auto flags = sample.trained();
  for (size_t i = 0; i < flags.size(); ++i) {
    if (flags[i] != 0) trained.ids.push_back(sample.ids[i]);
  }
  return ids_as_text(trained);
}

}  // namespace

TEST_CASE("text rows end with the end token, once") {
  const Fixture fixture;
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

TEST_CASE("chats train the turns of the assistant") {
  Fixture fixture;
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

TEST_CASE("a token that covers a part of a trained span is trained") {
  Fixture fixture;
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

TEST_CASE("token rows") {
  Fixture fixture;
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
  Fixture f;
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

TEST_CASE("bad rows are named by file, line and field") {
  Fixture fixture;
  fixture.options.vocabulary = 259;
  const auto refused = [&](const std::string& row, const std::vector<std::string>& parts) {
    const std::string message = fixture.refusal("{\"text\": \"good\"}\n" + row + "\n");
    INFO(row << " -> " << message);
    CHECK(has(message, "rows.jsonl:2: "));
    CHECK(message.find('\n') == std::string::npos);
    for (const auto& part : parts) CHECK(has(message, part));
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

TEST_CASE("a forced format reads its key and no other") {
  Fixture fixture;
  fixture.options.format = RowFormat::text;
  CHECK(fixture.read_text("{\"text\": \"a\", \"messages\": 3}").size() == 1);
  CHECK(has(fixture.refusal("{\"messages\": []}"), ":1: text"));
  fixture.options.format = RowFormat::tokens;
  CHECK(has(fixture.refusal("{\"text\": \"a\"}"), ":1: input_ids"));
  fixture.options.format = RowFormat::messages;
  CHECK(has(fixture.refusal("{\"text\": \"a\"}"), ":1: messages"));
}

TEST_CASE("long rows are cut, left out or refused") {
  Fixture fixture;
  const std::string rows =
      "{\"input_ids\": [1, 2, 3]}\n{\"input_ids\": [1, 2, 3, 4, 5]}\n"
      "{\"input_ids\": [1, 2, 3, 4], \"labels\": [-100, -100, -100, 4]}\n";
  const std::string path = fixture.file("rows.jsonl", rows);
  fixture.options.seq_len = 3;
  RowData data = read_rows({path}, fixture.options);
  CHECK(data.totals.rows == 3);
  CHECK(data.totals.tokens == 9);
  CHECK(data.totals.trained_tokens == 4);
  CHECK(data.totals.truncated == 2);
  CHECK(data.totals.truncated_tokens == 3);
  CHECK(data.totals.untrained == 1);
  CHECK(data.store.rows() == 3);
  CHECK(ids_of(data.store, 1) == std::vector<int32_t>{1, 2, 3});

  fixture.options.overflow = Overflow::drop;
  data = read_rows({path}, fixture.options);
  CHECK(data.totals.rows == 1);
  CHECK(data.totals.dropped == 2);

  fixture.options.overflow = Overflow::error;
  CHECK(has(fixture.refusal(rows), "rows.jsonl:2: 5 ids"));

  fixture.options.overflow = Overflow::truncate;
  fixture.options.seq_len = 2;
  const auto samples = fixture.read_text("{\"text\": \"abcd\"}");
  CHECK(ids_as_text(samples[0]) == "ab");
  CHECK(samples[0].spans.size() == 2);
}

TEST_CASE("data without rows or without trained tokens is refused") {
  Fixture fixture;
  const auto message = [&](std::string_view content) -> std::string {
    try {
      read_rows({fixture.file("rows.jsonl", content)}, fixture.options);
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::input);
      return error.what();
    }
    return "accepted";
  };
  CHECK(has(message(""), "no rows"));
  CHECK(has(message("\n \r\n\t\n"), "no rows"));
  CHECK(has(message("{\"input_ids\": [1, 2], \"labels\": [1, -100]}"), "no trained token"));
  CHECK(has(message("{\"input_ids\": [1]}"), "no trained token"));
  fixture.options.seq_len = 1;
  fixture.options.overflow = Overflow::drop;
  CHECK(has(message("{\"input_ids\": [1, 2]}"), "all 1 are longer"));
}

TEST_CASE("several files, in order, with digests of their bytes") {
  const Fixture fixture;
  const std::string a = fixture.file("a.jsonl", "{\"input_ids\": [1, 2]}");
  const std::string b = fixture.file("b.txt", "\ufeffline one\nline two\n");
  const std::string c = fixture.file("c", "\ufeff{\"input_ids\": [3, 4]}\r\n");
  const RowData data = read_rows({a, b, c}, fixture.options);
  REQUIRE(data.store.rows() == 3);
  CHECK(ids_of(data.store, 0)[0] == 1);
  CHECK(data.store.length(1) == 19);  // the text and the end token
  CHECK(ids_of(data.store, 2)[0] == 3);
  REQUIRE(data.digests.size() == 3);
  CHECK(data.digests[1].first == b);
  CHECK(data.digests[1].second == digest_of(read_file(b)));
  CHECK(data.digests[2].second == digest_of(read_file(c)));
}

TEST_CASE("plain text files") {
  const Fixture fixture;
  const auto samples = fixture.read({fixture.file("a.txt", "x\r\ny")});
  CHECK(ids_as_text(samples.at(0)) == "x\r\ny</S>");
  CHECK(has(fixture.refusal("", "a.txt"), "a.txt:1: no token"));
  CHECK(has(fixture.refusal("a\nb\xff", "a.txt"), "a.txt:2: invalid UTF-8"));
  CHECK(has(fixture.refusal(std::string_view("a\n\n\0", 4), "a.txt"), "a.txt:3: a NUL byte"));
}

TEST_CASE("files that are something else are refused") {
  Fixture fixture;
  CHECK(has(fixture.refusal("[]", "a.json"), "jq -c"));
  CHECK(has(fixture.refusal("\x1f\x8b rest", "a.jsonl"), "gunzip"));
  CHECK(has(fixture.refusal("\x28\xb5\x2f\xfd rest", "a.jsonl"), "unzstd"));
  CHECK(has(fixture.refusal("PAR1", "a.jsonl"), "read_parquet"));
  CHECK(has(fixture.refusal("{}", "a.jsonl.gz"), ".gz"));
  CHECK(has(fixture.refusal("{}", "a.parquet"), ".parquet"));
  CHECK(has(fixture.refusal("version https://git-lfs.github.com/spec/v1\n", "a.jsonl"), "git lfs"));
  CHECK(has(fixture.refusal("\x80\x02}", "a.jsonl"), "pickle"));

  const auto message = [&](const std::vector<std::string>& files, ExitCode code) -> std::string {
    try {
      RowReader(files, fixture.options);
    } catch (const Error& error) {
      CHECK(error.code() == code);
      return error.what();
    }
    return "accepted";
  };
  CHECK(has(message({fixture.directory.path()}, ExitCode::input), fixture.directory.path()));
  const std::string fifo = fixture.directory / "fifo";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(has(message({fifo}, ExitCode::input), "fifo"));
  CHECK(has(message({"/dev/null"}, ExitCode::input), "/dev/null"));
  CHECK(has(message({fixture.directory / "missing.jsonl"}, ExitCode::input), "missing.jsonl"));
  const std::string rows = fixture.file("rows.jsonl", "{}");
  CHECK(has(message({rows + ":x"}, ExitCode::input), "rows.jsonl:x"));
  CHECK(has(message({"-", "-"}, ExitCode::usage), "standard input"));
}

TEST_CASE("lines up to 16 MiB are read, those from 64 MiB on are not") {
  const Fixture fixture;
  const std::string long_row = "{\"text\": \"" + std::string((16 << 20) - 12, 'x') + "\"}\n";
  REQUIRE(long_row.size() == (16 << 20) + 1);
  CHECK(fixture.read_text(long_row).at(0).ids.size() > (15 << 20));
  CHECK(has(fixture.refusal("\n" + std::string(64 << 20, ' ') + "\n"), "rows.jsonl:2: a line"));
}

TEST_CASE("chats need a ChatML template, other rows do not") {
  Fixture fixture;
  const std::string chat = R"({"messages": [{"role": "assistant", "content": "A"}]})";
  const std::string other = "{{ messages[0].content }}";
  fixture.file("chat_template.jinja", other);
  CHECK(has(fixture.refusal(chat), "this version renders ChatML only"));
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
  config(other);
  CHECK(has(fixture.refusal(chat), "renders ChatML only"));
  config(nullptr);
  CHECK(has(fixture.refusal(chat), "no chat template"));
}

TEST_CASE("text needs an end token, chats do not") {
  Fixture fixture;
  remove_file(fixture.directory / "tokenizer_config.json");
  CHECK(has(fixture.refusal("{\"text\": \"a\"}"), "no eos_token"));
  fixture.options.chat_template = "chatml";
  CHECK(fixture.read_text(R"({"messages": [{"role": "assistant", "content": "A"}]})").size() == 1);
}
