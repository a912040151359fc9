// hearth tokenize --data: samples as the trainer sees them.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "data/tokenizer/builtin_tokenizer.h"
#include "support/program.h"
#include "support/test_paths.h"

using namespace hearth;

namespace {

// A model directory with nothing but the built-in tokenizer, and rows.
struct Samples {
  test::TemporaryDirectory directory;
  Samples() { write_builtin_tokenizer(directory.path()); }
  /// The rows by standard input.
  test::ProgramResult piped(const std::string& rows, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"tokenize", "--model", directory.path(), "--data", "-", "--json"});
    return test::run_program(test::test_binary(), more, rows);
  }
  test::ProgramResult run(const std::string& rows, std::vector<std::string> more) const {
    std::ofstream(directory / "rows.jsonl", std::ios::binary) << rows;
    std::vector<std::string> words{"tokenize", "--model", directory.path(), "--data",
                                   directory / "rows.jsonl"};
    words.insert(words.end(), more.begin(), more.end());
    return test::run_program(test::test_binary(), words);
  }
};

const std::string kRows =
    "{\"messages\": [{\"role\": \"user\", \"content\": \"Q\"}, "
    "{\"role\": \"assistant\", \"content\": \"A\"}]}\n"
    "{\"prompt\": \"ab\", \"completion\": \"c\"}\n"
    "{\"input_ids\": [65, 66], \"labels\": [-100, 66]}\n";

}  // namespace

TEST_CASE("tokenize --data prints the samples with what is trained marked") {
  const Samples samples;
  const auto result = samples.run(kRows, {});
  CHECK(result.exit_code == 0);
  const std::string file = samples.directory / "rows.jsonl";
  CHECK(result.out ==
        "--- row 1, " + file +
            ":1: 23 tokens, 3 trained\n"
            "<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\n\u27e6A<|im_end|>\n\u27e7\n"
            "--- row 2, " +
            file +
            ":2: 4 tokens, 2 trained\n"
            "ab\u27e6c<|im_end|>\u27e7\n"
            "--- row 3, " +
            file +
            ":3: 2 tokens, 1 trained\n"
            "A\u27e6B\u27e7\n");
  CHECK(result.out.find('\x1b') == std::string::npos);
}

TEST_CASE("tokenize --data --json prints an object a sample") {
  const Samples samples;
  auto result = samples.run(kRows, {"--json"});
  CHECK(result.exit_code == 0);
  std::vector<Json> lines;
  for (size_t begin = 0; begin < result.out.size();) {
    const size_t end = result.out.find('\n', begin);
    lines.push_back(parse_json(result.out.substr(begin, end - begin), "line"));
    begin = end + 1;
  }
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].find("row")->as_int() == 1);
  CHECK(lines[0].find("text")->as_string() ==
        "<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n");
  CHECK(lines[0].find("ids")->as_array().size() == 23);
  CHECK(lines[1].dump() ==
        R"({"row": 2, "text": "abc", "ids": [97, 98, 99, 258], "trained": [0, 0, 1, 1]})");
  CHECK(lines[2].dump() == R"({"row": 3, "text": "", "ids": [65, 66], "trained": [0, 1]})");

  result = samples.run(kRows, {"--json", "--train-on", "all", "--seq-len", "3"});
  CHECK(result.out.find(R"("trained": [0, 1, 1]})") != std::string::npos);
  result = samples.run("{\"text\": 1}\n" + kRows, {"--json", "--skip-bad-rows", "1"});
  CHECK(result.exit_code == 0);
  CHECK(result.out.starts_with(R"({"row": 2, )"));
  CHECK(result.err.find("rows.jsonl:1: text") != std::string::npos);
}

TEST_CASE("tokenize: what does not go together") {
  const Samples samples;
  CHECK(samples.run(kRows, {"--quiet", samples.directory / "rows.jsonl"}).exit_code == 2);
  CHECK(samples.run(kRows, {"--no-special"}).exit_code == 2);
  CHECK(samples.run(kRows, {"--template-date", "2026-02-30"}).exit_code == 2);
  CHECK(samples.run(kRows, {"--template-date", "2026-2-3"}).exit_code == 2);
  CHECK(samples.run(kRows, {"--template-date", "2026-02-03"}).exit_code == 0);
  CHECK(samples.run("[1]\n", {}).exit_code == 3);
  const auto result = test::run_program(
      test::test_binary(), {"tokenize", "--model", samples.directory.path(), "--format", "text"});
  CHECK(result.exit_code == 2);
  CHECK(result.err.find("--format needs --data") != std::string::npos);
}

TEST_CASE("tokenize --data follows links out of the model where it is told to") {
  const Samples samples;
  const test::TemporaryDirectory elsewhere;
  const std::string link = samples.directory / "tokenizer.json";
  std::filesystem::rename(link, elsewhere / "tokenizer.json");
  std::filesystem::create_symlink(elsewhere / "tokenizer.json", link);
  const auto refused = samples.run(kRows, {});
  CHECK(refused.exit_code == 3);
  CHECK(refused.err.find("--follow-links") != std::string::npos);
  CHECK(samples.run(kRows, {"--follow-links"}).exit_code == 0);
}

TEST_CASE("tokenize --data of a file without rows: exit 3") {
  const Samples samples;
  for (const char* rows : {"", "\n \n"}) {
    const auto result = samples.run(rows, {"--json"});
    CHECK(result.exit_code == 3);
    CHECK(result.err.find("no rows") != std::string::npos);
  }
  CHECK(samples.run("{\"input_ids\": [65, 66], \"labels\": [-100, -100]}\n", {}).exit_code == 0);
  const auto dropped = samples.run(kRows, {"--seq-len", "1", "--overflow", "drop"});
  CHECK(dropped.exit_code == 3);
  CHECK(dropped.err.find("dropped") != std::string::npos);
}

TEST_CASE("tokenize --data -: JSON Lines, an array or a table, told by the first line") {
  const Samples samples;
  const std::string rows = samples.run(R"({"prompt": "a, b", "completion": "c"})", {"--json"}).out;
  REQUIRE(rows.find("\"a, bc") != std::string::npos);
  for (const char* text :
       {R"({"prompt": "a, b", "completion": "c"})", R"([{"prompt": "a, b", "completion": "c"}])",
        "prompt,completion\n\"a, b\",c\n", "\xef\xbb\xbfprompt;completion\r\na, b;c\r\n",
        "\n\n\"prompt\"\t\"completion\"\na, b\tc"}) {
    INFO(text);
    const auto result = samples.piped(text);
    INFO(result.err);
    CHECK(result.out == rows);
  }
  const std::vector<std::string> columns{"--columns", "prompt=q,completion=an answer"};
  CHECK(samples.piped("q,an answer,id\n\"a, b\",c,7\n", columns).out == rows);
  CHECK(samples.piped("text\nhello\n").out == samples.run(R"({"text": "hello"})", {"--json"}).out);
  const auto refused = [&](const std::string& text, const std::string& part) {
    const auto result = samples.piped(text);
    INFO(text << result.err);
    CHECK(result.exit_code == 3);
    CHECK(result.err.find("standard input:" + part) != std::string::npos);
  };
  refused("prompt,completion\na,b\nc\n", "3: expected 2 fields, as the first line names, found 1");
  refused("Once upon a time\n", "1: expected a row of JSON Lines, or in the first line the names");
  refused("{\"text\": \"a\"}\n\n[1]\n", "3: expected a row of JSON Lines");
  refused(std::string("a,b\0\n", 5), "1: ");
}
