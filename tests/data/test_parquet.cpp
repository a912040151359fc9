// Parquet files: rows as pyarrow reads them (scripts/parity/parquet_files.py), and as training takes
// them.
#include <algorithm>
#include <filesystem>

#include "base/json.h"
#include "data/parquet/parquet_reader.h"
#include "data/row_fixture.h"
#include "data/rows/prompt_rows.h"
#include "data/rows/raw_rows.h"
#include "data/samples/data_files.h"
#include "support/raises.h"
#include "support/test_paths.h"

namespace hearth::test {
namespace {

const std::string kParquetFiles = test_data("/parquet/");

std::vector<RawRow> rows_of_file(const std::string& path, int64_t most = 0) {
  RawRowSource source({path}, most);
  std::vector<RawRow> rows;
  for (RawRow row; source.next(row);) rows.push_back(row);
  return rows;
}

std::string refusal_of_file(const std::string& path) {
  const Raised raised = raised_by([&] { rows_of_file(path); });
  CHECK(raised.code == ExitCode::input);
  return raised.message;
}

}  // namespace

TEST_CASE("parquet: the rows of pyarrow, from files of five writers") {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kParquetFiles)) {
    const std::string path = entry.path().string();
    if (entry.path().extension() != ".parquet" || has(path, "refused_")) continue;
    INFO(path);
    ++files;
    const auto wanted =
        rows_of_file(entry.path().parent_path() / (entry.path().stem().string() + ".jsonl"));
    const auto rows = rows_of_file(path);
    REQUIRE(rows.size() == wanted.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      INFO("row " << i + 1);
      CHECK(rows[i].problem.empty());
      CHECK(rows[i].line == static_cast<int64_t>(i) + 1);
      CHECK(rows[i].file == path);
      CHECK(parse_json(rows[i].text, "row").dump() == parse_json(wanted[i].text, "wanted").dump());
    }
  }
  CHECK(files >= 30);
}

TEST_CASE("parquet: samples, digests and first rows are those of the same JSON Lines") {
  const RowFixture f;
  for (const char* name : {"ids_v1", "fallback_v2", "duckdb_v2", "left_out"}) {
    INFO(name);
    const std::string path = kParquetFiles + name;
    RowOptions options = f.options;
    options.max_samples = 20;
    options.skip_bad_rows = 100;  // rows of no ids, and of no text
    const auto read = [&](const std::string& file) {
      RowReader reader({file}, options);
      std::vector<Sample> samples;
      for (Sample sample; reader.next(sample);) samples.push_back(sample);
      CHECK(reader.digests().at(0).second == digest_of(read_file(file)));
      return samples;
    };
    const auto samples = read(path + ".parquet"), same = read(path + ".jsonl");
    REQUIRE(samples.size() == same.size());
    CHECK(samples.size() > 1);
    for (size_t i = 0; i < samples.size(); ++i) {
      CHECK(samples[i].ids == same[i].ids);
      CHECK(samples[i].labels == same[i].labels);
      CHECK(samples[i].line == same[i].line);
    }
  }
  CHECK(rows_of_file(kParquetFiles + "ids_v2.parquet", 30).size() == 30);
}

TEST_CASE("parquet: found by directory and by content, columns renamed, prompts") {
  RowFixture f;
  const std::string bytes = read_file(kParquetFiles + "left_out.parquet");
  make_directory(f.directory / "rows_of");
  const std::string path = f.file("rows_of/a.parquet", bytes);
  f.file("rows_of/dataset_info.json", "{}");
  const auto files = find_data_files({f.directory / "rows_of"}, "--data", true);
  REQUIRE(files.size() == 1);
  CHECK(files[0].path == path);
  CHECK(f.read({f.file("rows", bytes)}).size() == 2);
  f.options.columns = {"text=completion"};
  CHECK(ids_as_text(f.read({path}).at(1)) == "d</S>");
  f.options.columns = {"text=day"};
  CHECK(raised_by([&] { f.read({path}); }).says("a.parquet:1: "));
  const PromptRow prompt = prompt_of_row(rows_of_file(path).at(1), {}, RowFormat::automatic);
  CHECK(prompt.text == "b");
}

TEST_CASE("parquet: what is not read is refused with its place") {
  const RowFixture f;
  for (const auto& [file, codec] : {std::pair("brotli", "BROTLI"), std::pair("lz4", "LZ4")}) {
    const std::string path = kParquetFiles + "refused_" + file + ".parquet";
    const std::string message = refusal_of_file(path);
    INFO(message);
    CHECK(has(message, path + ": row group 1 of 1, column 'text': pages compressed by " + codec));
    CHECK(message.find('\n') == std::string::npos);
  }
  const std::string whole = read_file(kParquetFiles + "chat_v1_none.parquet");
  CHECK(has(f.refusal(whole.substr(0, whole.size() - 1), "a.parquet"),
            "a.parquet: a Parquet file that is cut off: expected PAR1"));
  CHECK(has(f.refusal("PAR1PAR1", "a.parquet"), "cut off"));
  CHECK(has(f.refusal("PAR1" + whole.substr(whole.size() - 8), "a.parquet"),
            "expected a footer within the file"));
  CHECK(has(f.refusal("PAR1" + std::string("\x15\0\0\0\x01\0\0\0PAR1", 12), "a.parquet"),
            "a.parquet: a Parquet file that is damaged"));
  CHECK(has(f.refusal("PAR1" + std::string("\0\0\0\0PARE", 8), "a.parquet"), "encrypted"));
}

TEST_CASE("parquet: every changed byte gives rows or one line, and no more memory") {
  const RowFixture f;
  int refused = 0, read = 0, disagreed = 0;
  for (const char* name : {"chat_v2_snappy", "deep_v2", "delta_bytes", "split", "left_out"}) {
    const std::string whole = read_file(kParquetFiles + name + ".parquet");
    for (size_t i = 0; i < whole.size(); ++i) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
      const std::string path = f.file("a.parquet", changed);
      try {
        RawRowSource source({path}, 1000);
        for (RawRow row; source.next(row);) {
        }
        ++read;
      } catch (const Error& error) {
        ++refused;
        const std::string message = error.what();
        disagreed += has(message, "as many entries of 'calls' as in its other columns") ? 1 : 0;
        CHECK(error.code() == ExitCode::input);
        CHECK((has(message, path) && message.find('\n') == std::string::npos));
      }
    }
  }
  CHECK(refused > 500);
  CHECK(disagreed > 0);
  CHECK(read > 500);  // names, and what is not looked at
}

}  // namespace hearth::test
