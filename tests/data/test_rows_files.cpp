#include <sys/stat.h>

#include "data/row_fixture.h"

using namespace hearth;
using namespace hearth::test;

TEST_CASE("several files, in order, with digests of their bytes") {
  const RowFixture fixture;
  const std::string a = fixture.file("a.jsonl", "{\"input_ids\": [1, 2]}");
  const std::string b = fixture.file("b.txt", "\ufeffline one\nline two\n");
  const std::string c = fixture.file("c", "\ufeff{\"input_ids\": [3, 4]}\r\n");
  RowReader reader({a, b, c}, fixture.options);
  std::vector<Sample> samples;
  for (Sample sample; reader.next(sample);) samples.push_back(sample);
  REQUIRE(samples.size() == 3);
  CHECK(samples[0].ids[0] == 1);
  CHECK(samples[1].ids.size() == 19);  // the text and the end token
  CHECK(samples[2].ids[0] == 3);
  const auto& digests = reader.digests();
  REQUIRE(digests.size() == 3);
  CHECK(digests[1].first == b);
  CHECK(digests[1].second == digest_of(read_file(b)));
  CHECK(digests[2].second == digest_of(read_file(c)));
}

TEST_CASE("plain text files") {
  const RowFixture fixture;
  const auto samples = fixture.read({fixture.file("a.txt", "x\r\ny")});
  CHECK(ids_as_text(samples.at(0)) == "x\r\ny</S>");
  CHECK(has(fixture.refusal("", "a.txt"), "a.txt:1: no token"));
  CHECK(has(fixture.refusal("a\nb\xff", "a.txt"), "a.txt:2: invalid UTF-8"));
  CHECK(has(fixture.refusal(std::string_view("a\n\n\0", 4), "a.txt"), "a.txt:3: a NUL byte"));
}

TEST_CASE("a text that begins as files of bzip2 do is a text") {
  const RowFixture fixture;
  for (const std::string text : {"BZh", "BZh9", "BZh is no word"}) {
    INFO(text);
    const auto samples = fixture.read({fixture.file("a.txt", text)});
    CHECK(ids_as_text(samples.at(0)) == text + "</S>");
  }
  CHECK(has(fixture.refusal("BZh91AY&SY", "a.txt"), "packed by bzip2, which is not read"));
}

TEST_CASE("files that are something else are refused") {
  RowFixture fixture;
  CHECK(has(fixture.refusal("PAR1", "a.jsonl"), "a Parquet file"));
  CHECK(has(fixture.refusal("{}", "a.parquet"), "not a Parquet file"));
  CHECK(has(fixture.refusal("ARROW1", "a.jsonl"), "datasets"));
  CHECK(has(fixture.refusal(std::string_view("\xff\xff\xff\xff\x10\x02\0\0", 8), "a.jsonl"),
            "Arrow"));
  CHECK(has(fixture.refusal("{}", "a.arrow"), "Arrow"));
  CHECK(has(fixture.refusal("{}", "a.jsonl.xz"), ".xz"));
  CHECK(has(fixture.refusal("{}", "a.jsonl.gz"), ".gz"));
  CHECK(has(fixture.refusal("{}", "a.jsonl.zst"), ".zst"));
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

TEST_CASE("lines up to 16 MiB are read, those from 48 MiB on are not") {
  const RowFixture fixture;
  const std::string long_row = "{\"text\": \"" + std::string((16 << 20) - 12, 'x') + "\"}\n";
  REQUIRE(long_row.size() == (16 << 20) + 1);
  CHECK(fixture.read_text(long_row).at(0).ids.size() > (15 << 20));
  CHECK(has(fixture.refusal("\n" + std::string(48 << 20, ' ') + "\n"), "rows.jsonl:2: a line"));
}
