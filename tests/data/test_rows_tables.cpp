// Tables (CSV), .xz, --columns, --max-samples, and rows of preferences.
#include <lzma.h>

#include "data/row_fixture.h"
#include "data/rows/columns.h"
#include "data/rows/raw_rows.h"
#include "data/rows/row_fields.h"
#include "data/samples/row_key.h"
#include "support/raises.h"

namespace hearth::test {
namespace {

std::string xz(const std::string& text) {
  std::string packed(text.size() + 4096, '\0');
  size_t size = 0;
  REQUIRE(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, nullptr,
                                  reinterpret_cast<const uint8_t*>(text.data()), text.size(),
                                  reinterpret_cast<uint8_t*>(packed.data()), &size,
                                  packed.size()) == LZMA_OK);
  packed.resize(size);
  return packed;
}

struct Table {
  std::vector<std::string> rows, problems;
  std::vector<int64_t> lines;
};

Table read_table(const RowFixture& f, const std::string& text, const std::string& name = "t.csv") {
  RawRowSource source({f.file(name, text)});
  Table table;
  for (RawRow row; source.next(row);) {
    table.rows.push_back(row.text);
    table.problems.push_back(row.problem);
    table.lines.push_back(row.line);
  }
  return table;
}

}  // namespace

TEST_CASE("tables: quotes, line breaks, empty fields, blank lines, delimiters") {
  const RowFixture f;
  const Table t = read_table(f,
                             "\xef\xbb\xbf"
                             "a,b\r\n1,\"x, \"\"y\"\"\nz\"\r\n\r\n,\"\"\n\"1\",2 \"q\"\nlast,");
  CHECK(t.rows ==
        std::vector<std::string>{R"({"a": "1", "b": "x, \"y\"\nz"})", R"({"a": null, "b": ""})",
                                 R"({"a": "1", "b": "2 \"q\""})", R"({"a": "last", "b": null})"});
  CHECK(t.lines == std::vector<int64_t>{2, 5, 6, 7});
  CHECK(read_table(f, "a\tb\n1,2\t3\n", "t.TSV").rows.at(0) == R"({"a": "1,2", "b": "3"})");
  CHECK(read_table(f, xz("a\tb\n1,2\t3\n"), "t.tsv.xz").rows ==
        std::vector<std::string>{R"({"a": "1,2", "b": "3"})"});
  CHECK(read_table(f, "a;b\n1,2;3\n").rows.at(0) == R"({"a": "1,2", "b": "3"})");
  CHECK(read_table(f, "a,b;c\n1,3\n").rows.at(0) == R"({"a": "1", "b;c": "3"})");
  CHECK(read_table(f, "\r\n\na;b\n1,2;3\n").rows.at(0) == R"({"a": "1,2", "b": "3"})");
  CHECK(read_table(f, "a\tb\n1;2\t3\n").rows.at(0) == R"({"a": "1;2", "b": "3"})");
  CHECK(read_table(f, "a,b\n").rows.empty());
  const Table bad = read_table(f, "a,b\n1\n1,2,3\n\"x\"y,2\n\xff,2\n1,2\n");
  CHECK(bad.problems.at(0) == "expected 2 fields, as the first line names, found 1");
  CHECK(bad.problems.at(1) == "expected 2 fields, as the first line names, found 3");
  CHECK(has(bad.problems.at(2), "text after a quoted field"));
  CHECK(bad.problems.at(3) == "a: invalid UTF-8");
  CHECK(bad.problems.at(4).empty());
  CHECK(has(f.refusal("a,a\n1,2\n", "t.csv"), "t.csv:1: two columns are named 'a'"));
  CHECK(has(f.refusal("a,\n1,2\n", "t.csv"), "t.csv:1: a column without a name"));
  CHECK(has(f.refusal("text\nx\n\"y\n", "t.csv"), "t.csv:3: a quoted field that is never closed"));
  CHECK(has(f.refusal("text\na,b\n", "t.csv"), "t.csv:2: expected 1 fields"));
}

TEST_CASE("tables: a row is what the same row of JSON is") {
  const RowFixture f;
  const auto same = [&](const std::string& table, const std::string& row) {
    const Sample a = f.read({f.file("t.csv", table)}).at(0), b = f.read_row(row);
    return a.ids == b.ids && a.labels == b.labels && a.text == b.text;
  };
  CHECK(same("prompt,completion\nask,say\n", R"({"prompt": "ask", "completion": "say"})"));
  CHECK(same("text,other\nabc,\n", R"({"text": "abc"})"));
  CHECK(same("input_ids,labels\n\"[65, 66]\",\"[-100, 66]\"\n",
             R"({"input_ids": [65, 66], "labels": [-100, 66]})"));
  CHECK(has(f.refusal("input_ids\n[65\n", "t.csv"), "t.csv:2: input_ids"));
}

TEST_CASE("xz: whole files, several streams, damage") {
  const RowFixture f;
  const std::string one = "{\"text\": \"abc\"}\n", two = "{\"text\": \"de\"}\n";
  const std::string packed = xz(one);
  const auto count = [&](const std::string& bytes, const std::string& name) {
    return f.read({f.file(name, bytes)}).size();
  };
  CHECK(count(packed, "a.jsonl.xz") == 1);
  CHECK(count(packed, "a") == 1);
  CHECK(count(packed + xz(two), "a.jsonl.xz") == 2);
  CHECK(count(packed + std::string(8, '\0'), "a.jsonl.xz") == 1);
  for (size_t size = 1; size < packed.size(); ++size) {
    if (size < 6) continue;  // not known as xz yet
    CHECK(has(f.refusal(packed.substr(0, size), "a.jsonl.xz"), "a.jsonl.xz"));
  }
  std::string damaged = packed;
  damaged[packed.size() / 2] ^= 1;
  CHECK(has(f.refusal(damaged, "a.jsonl.xz"), "damaged"));
  CHECK(has(f.refusal(packed + "x", "a.jsonl.xz"), "a.jsonl.xz"));
  CHECK(has(f.refusal(xz(packed), "a.jsonl.xz"), "compressed twice"));
}

TEST_CASE("columns: fields under other names, alone to decide what a row is") {
  RowFixture f;
  f.options.columns = {"prompt=question", "completion=text"};
  const Sample mapped = f.read_row(R"({"question": "ask", "text": "say", "prompt": "no"})");
  f.options.columns = {};
  const Sample plain = f.read_row(R"({"prompt": "ask", "completion": "say"})");
  CHECK(mapped.ids == plain.ids);
  CHECK(mapped.labels == plain.labels);
  // Rows that would be of two kinds otherwise.
  f.options.columns = {"prompt=instruction", "completion=output"};
  CHECK(f.read_row(R"({"instruction": "ask", "output": "say", "text": "both"})").ids == plain.ids);
  CHECK(has(f.refusal(R"({"instruction": "ask"})"), "rows.jsonl:1: no member 'output' ("));
  f.options.skip_bad_rows = 1;
  CHECK(f.read_text("{\"instruction\": \"x\"}\n{\"instruction\": \"ask\", \"output\": \"say\"}\n")
            .size() == 1);
  for (const char* text : {"prompt", "=a", "prompt=", "promt=a"}) {
    CHECK(raised_by([&] { parse_columns({text}); }).code == ExitCode::usage);
  }
  CHECK(raised_by([] { parse_columns({"text=a", "text=b"}); }).says("given twice"));
  CHECK(raised_by([] { parse_columns({"text=a", "prompt=a"}); }).says("given twice"));
  CHECK(parse_columns({"text=a=b"}).at(0).member == "a=b");
}

TEST_CASE("max-samples: the first rows of each file, with the digest of the whole file") {
  RowFixture f;
  const std::string text = "{\"text\": \"a\"}\n\n{\"text\": \"b\"}\n{\"text\": \"c\"}\n" +
                           std::string(600'000, 'x') + "\n";  // more than is read at once
  const std::vector<std::string> files{f.file("a.jsonl", text), f.file("b.jsonl", text)};
  f.options.max_samples = 2;
  CHECK(f.read(files).size() == 4);
  RowReader reader(files, f.options);
  Sample sample;
  while (reader.next(sample)) {
  }
  REQUIRE(reader.digests().size() == 2);
  CHECK(reader.digests()[0].second == digest_of_file(files[0], [](uint64_t) {}));
  f.options.max_samples = 3;
  CHECK(f.read(files).size() == 6);
  f.options.max_samples = 4;
  CHECK(has(f.refusal(text), "rows.jsonl:5"));
  // Cached rows are of one number, and of one naming.
  RowOptions other = f.options;
  other.max_samples = 0;
  CHECK(conversion_key(other).hex() != conversion_key(f.options).hex());
  other = f.options;
  other.columns = {"text=a"};
  CHECK(conversion_key(other).hex() != conversion_key(f.options).hex());
}

TEST_CASE("rows of preferences are refused by name, unless --columns chooses") {
  RowFixture f;
  const std::string pair = R"({"prompt": "p", "chosen": "c", "rejected": "r"})";
  CHECK(has(f.refusal(pair), "rows.jsonl:1: a preference row (chosen and rejected)"));
  CHECK(has(f.refusal(R"({"chosen": [], "rejected": []})"), "a preference row"));
  CHECK(has(f.refusal(R"({"prompt": "p", "completion": "c", "label": true})"),
            "a preference row (completion with a label)"));
  CHECK(f.read_row(R"({"prompt": "p", "completion": "c", "label": 1})").ids.size() > 1);
  f.options.columns = {"completion=chosen"};
  CHECK(f.read_row(pair).text == "pc");
}

}  // namespace hearth::test
