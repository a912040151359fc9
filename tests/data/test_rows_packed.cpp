// Containers: JSON arrays, gzip, zstd.
#include "data/row_fixture.h"
#include "data/rows/raw_rows.h"
#include "support/packed.h"

using namespace hearth;
using namespace hearth::test;

namespace {

const std::string kRows = "{\"text\": \"one\"}\n\n{\"text\": \"two\"}\n{\"text\": \"three\"}\n";

// Lines and texts of the rows, as "line:text ".
std::string listed(const std::vector<std::string>& files) {
  RawRowSource source(files);
  std::string list;
  RawRow row;
  while (source.next(row)) list += std::to_string(row.line) + ":" + row.text + " ";
  return list;
}

std::string listed_array(const RowFixture& fixture, std::string_view text) {
  return listed({fixture.file("a.json", text)});
}

}  // namespace

TEST_CASE("a zstd frame that does not say its size, or another one") {
  const RowFixture f;
  const std::string row = "{\"text\": \"one\"}\n";
  REQUIRE(row.size() == 16);
  // Header of a window of 1 KiB without a size; a raw block, the last, of 16 bytes.
  const std::string packed = std::string("\x28\xb5\x2f\xfd\0\0\x81\0\0", 9) + row;
  CHECK(listed({f.file("a.zst", packed)}) == listed({f.file("a", row)}));
  // One that says 2^40 bytes and ends with an empty block behind 16.
  const std::string head("\x28\xb5\x2f\xfd\xc0\0\0\0\0\0\0\x01\0\0\x80\0\0", 17);
  const std::string other = head + row + std::string("\x01\0\0", 3);
  CHECK(has(f.refusal(other, "b.zst"), "a frame differs from the size"));
}

TEST_CASE("packed files give the rows of plain ones") {
  const RowFixture f;
  const std::string plain = listed({f.file("a.jsonl", kRows)});
  CHECK(plain == "1:{\"text\": \"one\"} 3:{\"text\": \"two\"} 4:{\"text\": \"three\"} ");
  CHECK(listed({f.file("a.jsonl.gz", gzip(kRows))}) == plain);
  CHECK(listed({f.file("a.jsonl.zst", zstd(kRows))}) == plain);
  CHECK(listed({f.file("packed", gzip(kRows))}) == plain);
  CHECK(listed({f.file("b.GZ", gzip(kRows))}) == plain);
  // Members and frames follow one another, cut at any byte; zeros pad a tape.
  const std::string a = kRows.substr(0, 20), b = kRows.substr(20);
  CHECK(listed({f.file("c.gz", gzip(a) + gzip("") + gzip(b) + std::string(700, '\0'))}) == plain);
  const std::string skipped("\x5a\x2a\x4d\x18\x03\0\0\0xyz", 11);
  CHECK(listed({f.file("c.zst", skipped + zstd(a) + skipped + zstd("") + zstd(b))}) == plain);

  RawRowSource source({f.file("d.gz", gzip(kRows))});
  RawRow row;
  while (source.next(row)) {
  }
  CHECK(source.bytes_read() == gzip(kRows).size());
  CHECK(source.digests().at(0).second == digest_of(gzip(kRows)));  // of the file as it is
}

TEST_CASE("plain texts and arrays may be packed too") {
  const RowFixture f;
  const auto samples = f.read({f.file("a.txt.gz", gzip("x\ny")), f.file("b.txt.zst", zstd("z")),
                               f.file("c.json.gz", gzip("[{\"text\": \"t\"}]"))});
  REQUIRE(samples.size() == 3);
  CHECK(ids_as_text(samples[0]) == "x\ny</S>");
  CHECK(ids_as_text(samples[1]) == "z</S>");
  CHECK(ids_as_text(samples[2]) == "t</S>");
}

TEST_CASE("long packed files are unpacked in pieces") {
  const RowFixture f;
  std::string rows;
  for (int i = 0; rows.size() < (5u << 20); ++i) {
    rows += "{\"input_ids\": [1, 2, " + std::to_string(i) + "]}\n";
  }
  const std::string plain = listed({f.file("a.jsonl", rows)});
  CHECK(listed({f.file("a.jsonl.gz", gzip(rows))}) == plain);
  CHECK(listed({f.file("a.jsonl.zst", zstd(rows))}) == plain);
}

TEST_CASE("damaged packed files are refused") {
  const RowFixture f;
  const auto refused = [&](const std::string& name, const std::string& bytes, const char* part) {
    const std::string message = f.refusal(bytes, name);
    INFO(message);
    CHECK(has(message, name));
    CHECK(has(message, part));
  };
  const std::string gz = gzip(kRows), zst = zstd(kRows);
  for (size_t n = 2; n < gz.size(); ++n) refused("a.gz", gz.substr(0, n), "cut off");
  for (size_t n = 4; n < zst.size(); ++n) refused("a.zst", zst.substr(0, n), "cut off");
  std::string bad = gz;
  bad[gz.size() - 5] ^= 1;  // of the checksum
  refused("a.gz", bad, "damaged");
  bad = zst;
  bad.back() ^= 1;
  refused("a.zst", bad, "damaged");
  refused("a.gz", gz + "trailing", "after the end");
  refused("a.gz", gz + "\x1f\x8b\x09" + std::string(20, '\0'), "damaged");
  refused("a.zst", zst + "trailing", "damaged");
  // The header of a frame says 2^28 bytes.
  refused("a.zst", std::string("\x28\xb5\x2f\xfd\0\x90", 6) + std::string(20, '\0'), "128 MiB");
  refused("a.gz", gzip(zst), "compressed twice");
  refused("a.gz", gzip("PAR1"), "Parquet");
  // No row of what cannot be cut is passed over.
  RowFixture tolerant;
  tolerant.options.skip_bad_rows = 100;
  CHECK(has(tolerant.refusal(gz.substr(0, gz.size() - 1), "a.gz"), "cut off"));
}

TEST_CASE("what unpacks to endless text is refused") {
  const RowFixture f;
  const std::string blanks(65 << 20, '\n'), text(65 << 20, 'x');
  CHECK(has(f.refusal(gzip(blanks), "a.jsonl.gz"), "blank lines"));
  CHECK(has(f.refusal(zstd("[" + blanks), "a.json.zst"), "48 MiB of blanks"));
  CHECK(has(f.refusal(zstd("[\"" + text), "a.json.zst"), "a.json.zst:1: a row of 48 MiB"));
  CHECK(has(f.refusal(zstd(text), "a.txt.zst"), "48 MiB"));
  CHECK(has(f.refusal(zstd("{}\n" + text), "a.jsonl.zst"), "a.jsonl.zst:1"));
}

TEST_CASE("the elements of an array are rows, with the lines they begin in") {
  const RowFixture f;
  CHECK(listed_array(f, "[]").empty());
  CHECK(listed_array(f, " [ \n ] \n").empty());
  CHECK(listed_array(f, "[{\"a\": 1},{\"b\": [1, {}]}]") == "1:{\"a\": 1} 1:{\"b\": [1, {}]} ");
  CHECK(listed_array(f, "\xef\xbb\xbf\n[\n{\"a\":\n\n1}\n,\n \n{}]\n") == "3:{\"a\":\n\n1} 8:{} ");
  CHECK(listed_array(f, R"([{"a": "]}\"[,\\"}, "x,]\"", 5, null ,true, [3]])") ==
        R"(1:{"a": "]}\"[,\\"} 1:"x,]\"" 1:5 1:null 1:true 1:[3] )");
  // Many .json files hold JSON Lines.
  CHECK(listed_array(f, "\n" + kRows) ==
        "2:{\"text\": \"one\"} 4:{\"text\": \"two\"} 5:{\"text\": \"three\"} ");
  // Elements and gaps across the pieces that are read.
  std::string text = "[", expected;
  for (int i = 0; i < 40; ++i) {
    const std::string element = "{\"" + std::string(77'777, 'k') + "\": " + std::to_string(i) + "}";
    text += (i > 0 ? "," : "") + std::string(7'777, ' ') + "\n" + element;
    expected += std::to_string(i + 2) + ":" + element + " ";
  }
  CHECK(listed_array(f, text + "]") == expected);
}

TEST_CASE("arrays that are none are refused with the line") {
  const RowFixture f;
  const auto refused = [&](const std::string& text, const std::string& part) {
    const std::string message = f.refusal(text, "a.json");
    INFO(text << " -> " << message);
    CHECK(has(message, part));
  };
  const std::string row = "{\"text\": \"a\"}";
  refused("[\n" + row, "a.json:2: the file ends before the ']'");
  refused("[", "a.json:1: the file ends before the ']'");
  refused("[" + row + ",\n", "a.json:2: the file ends before the ']'");
  refused("[" + row + ",\n]", "a.json:2: a comma after the last row");
  refused("[" + row + "\n" + row + "]", "a.json:2: expected ',' or ']' after a row, found '{'");
  refused("[," + row + "]", "expected a row, found ','");
  refused("[" + row + ",," + row + "]", "expected a row, found ','");
  refused("[}]", "expected a row, found '}'");
  refused("[" + row + "]\n\n]", "a.json:3: expected the end of the file");
  refused("[\n\n{\"text\": \"a\"", "a.json:3: the file ends inside this row");
  // An element is judged as a row, where it stands.
  refused("[\n" + row + ",\n{\"text\":\n\n 5x}]", "a.json:5: column 3");
  refused("[\n" + row + ",\n{\"text\":\n\n 5}]", "a.json:3: text: expected a string");
  refused("[" + row + ", 7]", "a.json:1: expected a JSON object");
  refused("[{\"text\": \"a\"]", "a.json:1");
}

TEST_CASE("bad elements of an array are passed over as bad lines are") {
  RowFixture f;
  f.options.skip_bad_rows = 2;
  CHECK(f.read({f.file("a.json", "[{\"text\": \"a\"}, {\"text\": 5}, {:}, {\"text\": \"b\"}]")})
            .size() == 2);
}
