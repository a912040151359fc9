// Parquet files that no good writer makes: older forms of lists, wrong numbers, sizes that only a
// header has.
#include <zstd.h>

#include "base/json.h"
#include "data/parquet/parquet_reader.h"
#include "data/parquet/snappy.h"
#include "data/row_fixture.h"
#include "support/counted_memory.h"
#include "support/parquet_file.h"
#include "support/raises.h"

namespace hearth::test {
namespace {

std::string number4(uint32_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
std::string plain_text(const std::string& text) {
  return number4(static_cast<uint32_t>(text.size())) + text;
}
/// Levels of version 1: their size, then runs of (count, level).
std::string level_runs(const std::vector<std::pair<int, int>>& runs) {
  std::string bytes;
  for (const auto& [count, level] : runs) {
    bytes += static_cast<char>(count << 1);
    bytes += static_cast<char>(level);
  }
  return number4(static_cast<uint32_t>(bytes.size())) + bytes;
}

struct OddParquet : RowFixture {
  std::vector<std::string> rows(const ParquetFileText& odd,
                                const ParquetLimits& limits = {}) const {
    const std::string text = odd.text();
    const std::string path = file("odd.parquet", text);
    std::vector<std::string> rows;
    start_counting();
    const Raised raised = raised_by([&] {
      ParquetReader reader(path, limits);
      for (RawRow row; reader.next(row);) {
        rows.push_back(row.problem.empty() ? row.text : "problem: " + row.problem);
      }
    });
    CHECK(counted_peak() < (4 << 20) + static_cast<int64_t>(text.size()));
    if (!raised.message.empty()) throw Error(raised.code, raised.message);
    return rows;
  }
  std::string refused_for(const ParquetFileText& odd, const ParquetLimits& limits = {}) const {
    const Raised raised = raised_by([&] { rows(odd, limits); });
    CHECK(raised.code == ExitCode::input);
    CHECK(raised.message.find('\n') == std::string::npos);
    CHECK(raised.says("odd.parquet: "));
    return raised.message;
  }
};

using Rows = std::vector<std::string>;

ParquetFileText one_text(const std::string& payload, int64_t encoding = 0, int64_t values = 1) {
  return {.pages = {{.payload = payload, .values = values, .encoding = encoding}}};
}

/// Elements of a list that older writers mean, below a group "ids" with the annotation of lists.
ParquetFileText old_list(std::vector<ParquetElementText> below) {
  ParquetFileText file;
  file.elements = {{.name = "ids", .children = 1, .converted = 3}};
  file.elements.insert(file.elements.end(), below.begin(), below.end());
  file.type = 1;
  file.rows = 2;
  file.values = 3;
  file.pages = {{.payload = level_runs({{1, 0}, {1, 1}, {1, 0}}) + level_runs({{2, 1}, {1, 0}}) +
                            number4(7) + number4(8),
                 .values = 3}};
  return file;
}

}  // namespace

TEST_CASE("odd parquet: lists of older writers") {
  const OddParquet f;
  const ParquetElementText number{.name = "element", .type = 1};
  // Two levels: the repeated element is the value.
  CHECK(f.rows(old_list({{.name = "array", .type = 1, .repetition = 2}})) ==
        Rows{R"({"ids": [7, 8]})", R"({"ids": []})"});
  // Three levels, whatever the names.
  CHECK(f.rows(old_list({{.name = "bag", .repetition = 2, .children = 1}, number})) ==
        Rows{R"({"ids": [7, 8]})", R"({"ids": []})"});
  // Two levels of structs of one member.
  for (const char* name : {"array", "ids_tuple"}) {
    CHECK(f.rows(old_list({{.name = name, .repetition = 2, .children = 1}, number})) ==
          Rows{R"({"ids": [{"element": 7}, {"element": 8}]})", R"({"ids": []})"});
  }
  // Without a group around it.
  ParquetFileText bare = old_list({});
  bare.elements = {{.name = "ids", .type = 1, .repetition = 2}};
  CHECK(f.rows(bare) == Rows{R"({"ids": [7, 8]})", R"({"ids": []})"});
}

TEST_CASE("odd parquet: pages that are passed over, texts without annotation") {
  const OddParquet f;
  ParquetFileText file = one_text(plain_text("a"));
  file.pages.insert(file.pages.begin(), {.payload = "index", .kind = 1});
  file.pages.insert(file.pages.begin() + 1, {.values = 0});
  CHECK(f.rows(file) == Rows{R"({"text": "a"})"});
  file.pages[2].payload = plain_text("\xff");
  CHECK(f.rows(file) == Rows{"problem: text: invalid UTF-8"});
  file.elements[0].converted = -1;
  CHECK(f.rows(file) == Rows{R"({"text": null})"});
  file.pages[2].payload = plain_text("b");
  CHECK(f.rows(file) == Rows{R"({"text": "b"})"});
  // Version 2, whose levels are not packed.
  file.elements[0].repetition = 1;
  file.pages = {{.payload = std::string("\x02\x01\x02\0", 4) + plain_text("c"),
                 .values = 2,
                 .kind = 3,
                 .definition_bytes = 4}};
  file.rows = file.values = 2;
  CHECK(f.rows(file) == Rows{R"({"text": "c"})", R"({"text": null})"});
  file.pages[0].definition_bytes = 400;
  CHECK(has(f.refused_for(file), "levels within their page"));
}

TEST_CASE("odd parquet: what does not fit together is refused with its place") {
  const OddParquet f;
  const std::string place = "odd.parquet: row group 1 of 1, column 'text': ";
  const auto says = [&](const ParquetFileText& file, const std::string& what) {
    const std::string message = f.refused_for(file);
    INFO(message);
    CHECK(has(message, place));
    CHECK(has(message, what));
  };
  const ParquetFileText good = one_text(plain_text("a"));
  REQUIRE(f.rows(good).size() == 1);
  says(one_text(""), "a value for each level");
  says(one_text(number4(2) + "a"), "a value for each level");
  says(one_text(number4(0xffffffff) + "a"), "a value for each level");
  says(one_text(std::string("\x08\x03\x00", 3), 8), "a dictionary before the pages");
  says(one_text(plain_text("a"), 4), "the encoding BIT_PACKED, which is not read");
  says(one_text(plain_text("a"), 5), "the encoding DELTA_BINARY_PACKED");
  says(one_text(plain_text("a"), 77), "the encoding number 77");

  ParquetFileText file = good;
  file.pages[0].values = 2;
  says(file, "1 values, and found more");
  file = good;
  file.values = 2;
  says(file, "2 values, and found 1");
  file.rows = 2;
  says(file, "2 values, and found 1");
  file = one_text(plain_text("a") + plain_text("b"), 0, 2);
  file.values = 2;
  says(file, "no values behind the last row");
  file = good;
  file.type = 2;
  says(file, "the type 6 of the schema, and found 2");
  file = good;
  file.path = "other.parquet";
  says(file, "a column in another file");
  file = good;
  file.codec = 4;
  says(file, "pages compressed by BROTLI");
  file = good;
  file.pages[0].crc = 1;
  says(file, "the checksum of its header");
  file = good;
  file.pages[0].kind = 9;
  says(file, "found number 9");
  file.pages[0] = {.payload = plain_text("a"), .values = 1, .encoding = 3, .kind = 2};
  says(file, "a dictionary in the encoding RLE");
  file.pages[0].encoding = 0;
  file.pages.push_back(file.pages[0]);
  says(file, "one dictionary");
  file.pages[1] = {.payload = std::string("\x08\x02\x07", 3), .values = 1, .encoding = 8};
  says(file, "within the page and its dictionary");  // entry 7 of 1
  file.pages[1].payload[2] = 0;
  CHECK(f.rows(file) == Rows{R"({"text": "a"})"});

  file = good;
  file.elements[0].repetition = 1;
  file.pages[0] = {.payload = level_runs({{1, 3}}) + plain_text("a"), .values = 1};
  says(file, "a level for each value");
  file.pages[0].payload = level_runs({});
  says(file, "a level for each value");
  file.pages[0].payload = number4(50);
  says(file, "levels within their page");
  file.pages[0].level_encoding = 4;
  says(file, "levels in the encoding BIT_PACKED");

  // A row that begins in the midst of a list.
  file = old_list({{.name = "array", .type = 1, .repetition = 2}});
  file.pages[0].payload[5] = 1;
  CHECK(has(f.refused_for(file),
            "column 'ids.array': a Parquet file that is damaged: expected the "
            "first value of a row"));
}

TEST_CASE("odd parquet: no size of a header alone takes memory") {
  const OddParquet f;
  const ParquetFileText good = one_text(plain_text("a"));
  ParquetFileText file = good;
  file.pages[0].packed_size = 0x7fffffff;
  CHECK(has(f.refused_for(file), "a page of 2147483647 bytes within the column"));
  file.bytes = int64_t{1} << 60;
  CHECK(has(f.refused_for(file), "pages within the file"));
  file = good;
  file.at = int64_t{1} << 60;
  CHECK(has(f.refused_for(file), "pages within the file"));
  file.at = -5;
  CHECK(has(f.refused_for(file), "pages within the file"));
  file = good;
  file.pages[0].size = 0x7fffffff;
  CHECK(has(f.refused_for(file), "pages of more than 1024 MiB"));
  file.pages[0].size = 1 << 29;
  for (const int64_t codec : {0, 1, 2, 6}) {
    INFO(codec);
    file.codec = codec;
    CHECK(
        has(f.refused_for(file), "column 'text': a Parquet file that is damaged: expected a page"));
  }
  file = good;
  file.pages.insert(file.pages.begin(), {.payload = "abcd", .values = 0x7fffffff, .kind = 2});
  CHECK(has(f.refused_for(file), "a dictionary page of 2147483647 values"));
  file = good;
  file.rows = int64_t{1} << 60;
  file.values = int64_t{1} << 60;
  CHECK(has(f.refused_for(file), "and found 1"));
  // Levels and differences in runs, of far more values than bytes.
  file = old_list({{.name = "array", .type = 1, .repetition = 2}});
  const std::string nulls("\xfe\xff\xff\xff\x0f\0", 6);
  file.rows = 1;
  file.values = 0x7fffffff;
  const std::string further("\x02\0\xfc\xff\xff\xff\x0f\1", 8);
  const std::string ones("\xfe\xff\xff\xff\x0f\1", 6);
  file.pages[0] = {.payload = number4(8) + further + number4(6) + ones +
                              // 2^20 zeros: one block of a size that no writer has
                              std::string("\x80\x80\x40\x01\x80\x80\x40\0\0\0", 10),
                   .values = 0x7fffffff,
                   .encoding = 5};
  CHECK(has(f.refused_for(file), "a value for each level"));
  file.pages[0].payload = number4(8) + further + number4(6) + ones + std::string("\1\1\1\1\1", 5);
  file.pages[0].encoding = 8;
  file.pages.insert(file.pages.begin(), {.payload = number4(5), .values = 1, .kind = 2});
  file.pages[1].payload = number4(8) + further + number4(6) + ones + std::string("\0", 1);
  const Raised raised = raised_by([&] { f.rows(file, {.row = 1 << 16}); });
  CHECK(raised.says("odd.parquet:1: a row of more than 0 MiB"));
}

TEST_CASE("odd parquet: pages that unpack to more than they say") {
  const OddParquet f;
  const std::string zeros(1 << 20, '\0');
  std::string packed(ZSTD_compressBound(zeros.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), zeros.data(), zeros.size(), 1));
  ParquetFileText file = one_text(packed);
  file.codec = 6;
  for (const int64_t size : {100, (1 << 20) - 1, (1 << 20) + 1, 1 << 29}) {
    file.pages[0].size = size;
    CHECK(has(f.refused_for(file), "a page of " + std::to_string(size) + " bytes when unpacked"));
  }
  file.pages[0].size = 1 << 20;
  CHECK(f.rows(file) == Rows{R"({"text": ""})"});
  CHECK(has(f.refused_for(file, {.held = 1 << 19}), "pages of more than 0 MiB at one time"));
  file.pages[0].payload += "more";
  CHECK(has(f.refused_for(file), "odd.parquet"));
  file.codec = 2;
  CHECK(has(f.refused_for(file), "a page packed by gzip"));
}

TEST_CASE("odd parquet: a column holds one page at a time") {
  const OddParquet f;
  ParquetFileText file = one_text(plain_text(std::string(100'000, 'a')));
  file.pages.resize(5, file.pages[0]);
  file.rows = file.values = 5;
  CHECK(f.rows(file, {.held = 110'000}).size() == 5);
  CHECK(has(f.refused_for(file, {.held = 90'000}), "a page of more than 0 MiB"));
}

TEST_CASE("odd parquet: schemas") {
  const OddParquet f;
  ParquetFileText file = one_text(plain_text("a"));
  const auto says = [&](std::vector<ParquetElementText> elements, const std::string& what) {
    file.elements = std::move(elements);
    const std::string message = f.refused_for(file);
    INFO(message);
    CHECK(has(message, what));
  };
  const ParquetElementText text{.name = "text", .type = 6, .converted = 0};
  says({text, text}, "two columns are named 'text'");
  says({{.name = "day", .type = 1, .converted = 6}}, "no column of texts, numbers or booleans");
  says({{.name = "group"}}, "members of 'group.'");
  says({{.name = "group", .children = 3}, text}, "a schema of more elements");
  says({{.name = "text", .type = 9}}, "an element of a schema at 'text'");
  says({{.name = "text", .type = 6, .repetition = 3}}, "an element of a schema at 'text'");
  says({{.name = "a\xff", .type = 6}}, "names of columns in UTF-8");
  says({text, {.name = "other", .type = 6}},
       "row group 1 of 1: a Parquet file that is damaged: "
       "expected 2 columns, as the schema has, and found 1");
  std::vector<ParquetElementText> deep(200, {.name = "a", .children = 1});
  deep.push_back(text);
  says(deep, "nested more than 48 deep");
}

TEST_CASE("odd parquet: snappy, by the bytes of its description") {
  const auto unpacked = [](const std::string& packed, size_t size) {
    return unpack_snappy(packed, size).value_or("damaged");
  };
  CHECK(unpacked(std::string("\0", 1), 0).empty());
  CHECK(unpacked("\x03\x08"
                 "abc",
                 3) == "abc");
  CHECK(unpacked("\x03\x08"
                 "abc",
                 4) == "damaged");
  CHECK(unpacked("\x03\x08"
                 "ab",
                 3) == "damaged");
  CHECK(unpacked("\x02\x08"
                 "abc",
                 2) == "damaged");
  // "ab", then copies of 4 from 2 back (overlapping), 3 from 6 back, 2 from 1 back.
  CHECK(unpacked(std::string("\x0b\x04"
                             "ab"
                             "\x01\x02"
                             "\x0a\x06\0"
                             "\x07\x01\0\0\0",
                             14),
                 11) == "ababababaaa");
  CHECK(unpacked(std::string("\x06\x04"
                             "ab"
                             "\x01\0",
                             6),
                 6) == "damaged");  // 0 back
  CHECK(unpacked(std::string("\x06\x04"
                             "ab"
                             "\x01\x03",
                             6),
                 6) == "damaged");  // before the start
  CHECK(unpacked(std::string("\x05\x04"
                             "ab"
                             "\x01\x02",
                             6),
                 5) == "damaged");  // beyond the end
  CHECK(unpacked("\x03\xf0\x02"
                 "abc",
                 3) == "abc");  // long form
  CHECK(unpacked("\x03\xfc\xff\xff\xff\xff"
                 "abc",
                 3) == "damaged");
  CHECK(unpacked("\xff\xff\xff\xff\x0f", 0xffffffff) == "damaged");
  CHECK(unpacked("\xff\xff\xff\xff\xff", 0) == "damaged");
}

}  // namespace hearth::test
