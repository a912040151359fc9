// Data files: texts that are none, files that are something else, packed files that are damaged or
// grow without end; the same by standard input.
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <sstream>

#include "hostile/hostile.h"
#include "support/packed.h"
#include "support/test_paths.h"

using namespace hearth;
using namespace hearth::test;

namespace {

constexpr const char* kRowsFile = "rows.jsonl";
constexpr const char* kGoodFile = "{\"input_ids\": [1, 2, 3]}\n";

Case whole_file(const std::string& name, const std::string& text, std::vector<std::string> says) {
  return {name, [=](const Place& p) { p.write(kRowsFile, text); }, std::move(says)};
}

/// A long file in pieces: the memory of this process counts as the child's until it starts.
void write_pieces(const Place& place, const std::string& head, char fill, size_t megabytes,
                  const std::string& tail) {
  std::ofstream out(place.path(kRowsFile), std::ios::binary);
  out << head;
  const std::string piece(size_t{1} << 20, fill);
  for (size_t i = 0; i < megabytes; ++i) out << piece;
  out << tail;
}

/// A packed character, repeated so many mebibytes: members, or frames, of 64 MiB.
std::string repeated(const std::string& packed_64_mib, size_t megabytes) {
  std::string all;
  for (size_t i = 0; i < megabytes / 64; ++i) all += packed_64_mib;
  return all;
}
std::string repeated_gzip(char c, size_t megabytes) {
  return repeated(gzip(std::string(64 << 20, c)), megabytes);
}
std::string repeated_zstd(char c, size_t megabytes) {
  return repeated(zstd(std::string(64 << 20, c)), megabytes);
}

}  // namespace

TEST_CASE("hostile: whole data files") {
  run_table("data files",
            {
                whole_file("no bytes", "", {"rows.jsonl", "no rows"}),
                whole_file("empty lines alone", "\n\n \n", {"rows.jsonl", "no rows"}),
                whole_file("a byte order mark alone", "\xef\xbb\xbf", {"rows.jsonl"}),
                whole_file("no trained token",
                           "{\"input_ids\": [1, 2, 3], \"labels\": [-100, -100, -100]}\n",
                           {"rows.jsonl", "no trained token"}),
                whole_file("a trained token in the first place alone",
                           "{\"input_ids\": [1, 2, 3], \"labels\": [1, -100, -100]}\n",
                           {"rows.jsonl", "no trained token"}),
                whole_file("one id a row", "{\"input_ids\": [1]}\n{\"input_ids\": [2]}\n",
                           {"rows.jsonl", "no trained token"}),
                whole_file("an array over lines", "[\n{\"text\": \"a\"},\n{\"text\": \"b\"}\n]\n",
                           {"rows.jsonl:1"}),
                whole_file("UTF-16", std::string("\xff\xfe{\0\"\0t\0", 8), {"rows.jsonl:1"}),
                whole_file("Parquet", "PAR1" + std::string(60, '\0'), {"a Parquet file"}),
                whole_file("Arrow", "ARROW1" + std::string(60, '\0'), {"Arrow", "datasets"}),
                whole_file("NUL bytes", std::string(4096, '\0'), {"rows.jsonl:1"}),
                {"1 TB of holes",
                 [](const Place& p) { p.sparse(kRowsFile, "{\"text\": \"", uint64_t{1} << 40); },
                 {"rows.jsonl:1", "48 MiB"}},
                {"a line of 48 MiB",
                 [](const Place& p) { write_pieces(p, "{\"text\": \"", 'a', 64, "\"}\n"); },
                 {"rows.jsonl:1", "48 MiB"}},
                {"a line of 48 MiB behind good ones",
                 [](const Place& p) {
                   write_pieces(p, std::string(kGoodFile) + kGoodFile + "{\"text\": \"", 'a', 64,
                                "\"}\n");
                 },
                 {"rows.jsonl:3", "48 MiB"}},
                {"16 MiB of brackets",
                 [](const Place& p) { write_pieces(p, "", '[', 16, "\n"); },
                 {"rows.jsonl:1", "nested"}},
            },
            eval_words());
  run_table("data, kind", not_a_file(kRowsFile), eval_words());
  run_table("data, absent", {{"none", [](const Place& p) { p.remove(kRowsFile); }, {kRowsFile}}},
            eval_words());
  auto text = eval_words();
  text.back() = "rows.txt";
  const auto document = [](std::string bytes) {
    return [=](const Place& p) { p.write("rows.txt", bytes); };
  };
  run_table("plain text",
            {{"good", document("a\nb\n"), {}, 0},
             {"no UTF-8", document("a\n\xff\n"), {"rows.txt:2", "UTF-8"}},
             {"a NUL byte", document(std::string("a\n\n\0", 4)), {"rows.txt:3", "NUL"}},
             {"1 TB of holes",
              [](const Place& p) { p.sparse("rows.txt", "a", uint64_t{1} << 40); },
              {"rows.txt", "48 MiB"}}},
            text);
}

TEST_CASE("hostile: packed data files") {
  const std::string good_gzip = gzip(kGoodFile), good_zstd = zstd(kGoodFile);
  std::string flipped = good_gzip;
  flipped[flipped.size() - 6] ^= 1;
  std::string unsure = good_zstd;
  unsure.back() ^= 1;
  const std::string frame("\x28\xb5\x2f\xfd", 4);
  run_table(
      "packed rows",
      {
          {"gzip", [=](const Place& p) { p.write(kRowsFile, good_gzip); }, {}, 0},
          {"zstd", [=](const Place& p) { p.write(kRowsFile, good_zstd); }, {}, 0},
          whole_file("gzip, cut off", good_gzip.substr(0, good_gzip.size() - 3),
                     {kRowsFile, "cut off"}),
          whole_file("gzip, the magic alone", "\x1f\x8b", {kRowsFile, "cut off"}),
          whole_file("gzip, zeros", std::string("\x1f\x8b\x08\0", 4) + std::string(60, '\0'),
                     {kRowsFile, "damaged"}),
          whole_file("gzip, another checksum", flipped, {kRowsFile, "damaged"}),
          whole_file("gzip and more", good_gzip + "and more", {kRowsFile, "after the end"}),
          whole_file("zstd, cut off", good_zstd.substr(0, good_zstd.size() - 3),
                     {kRowsFile, "cut off"}),
          whole_file("zstd, the magic alone", frame, {kRowsFile, "cut off"}),
          whole_file("zstd, zeros", frame + std::string(60, '\0'), {kRowsFile}),
          whole_file("zstd, another checksum", unsure, {kRowsFile, "damaged"}),
          whole_file("zstd, a window of 2^41", frame + std::string("\0\xf8\0\0\0\0", 6),
                     {kRowsFile, "window"}),
          whole_file("zstd, a size of 2^63",
                     frame + std::string("\xe0\xff\xff\xff\xff\xff\xff\xff\x7f\0\0", 11),
                     {kRowsFile}),
          whole_file("zstd, a dictionary that is not there",
                     frame + std::string("\x23\x01\x02\x03\x04\x05\x01\0\0a", 10), {kRowsFile}),
          whole_file("compressed twice", gzip(good_gzip), {kRowsFile, "compressed twice"}),
          whole_file("packed Parquet", zstd("PAR1"), {kRowsFile, "Parquet"}),
          whole_file("nothing, packed", gzip(""), {kRowsFile, "no rows"}),
          whole_file("a bad row, packed", gzip(std::string(kGoodFile) + "\n7\n"), {"rows.jsonl:3"}),
          whole_file("gzip: 1 GiB of blank lines", repeated_gzip('\n', 1024),
                     {kRowsFile, "blank lines"}),
          whole_file("gzip: a row of 1 GiB", repeated_gzip('[', 1024), {"rows.jsonl:1", "48 MiB"}),
          whole_file("zstd: a row of 1 GiB", repeated_zstd('[', 1024), {"rows.jsonl:1", "48 MiB"}),
      },
      eval_words());
}

TEST_CASE("hostile: Parquet files of rows") {
  auto words = eval_words();
  words.back() = "rows.parquet";
  const std::string good = [] {
    const std::ifstream in(test_data("/parquet/ids_v1.parquet"), std::ios::binary);
    return (std::ostringstream() << in.rdbuf()).str();
  }();
  const auto file = [](std::string name, std::string bytes, std::vector<std::string> says) {
    const int code = says.empty() ? 0 : 3;
    return Case{std::move(name), [=](const Place& p) { p.write("rows.parquet", bytes); },
                std::move(says), code};
  };
  const auto with = [&](size_t at, const std::string& bytes) {
    std::string changed = good;
    return changed.replace(at, bytes.size(), bytes);
  };
  const size_t end = good.size();
  run_table(
      "Parquet",
      {
          file("the magic alone", "PAR1", {"rows.parquet", "cut off"}),
          file("zeros", "PAR1" + std::string(60, '\0'), {"rows.parquet", "cut off"}),
          file("cut off", good.substr(0, end - 20), {"rows.parquet", "cut off"}),
          file("no Parquet", "{}", {"rows.parquet", "not a Parquet file"}),
          file("a footer of 4 GiB", with(end - 8, "\xff\xff\xff\xff"), {"rows.parquet", "footer"}),
          file("a footer of nothing", with(end - 8, std::string(4, '\0')),
               {"rows.parquet", "damaged"}),
          file("encrypted", with(end - 4, "PARE"), {"rows.parquet", "encrypted"}),
          file("pages of zeros", with(4, std::string(200, '\0')),
               {"rows.parquet: row group 1 of 3, column 'input_ids.list.element'", "damaged"}),
          file("packed", gzip(good), {"rows.parquet", "a packed file", "unpack it"}),
          {"1 TB of holes",
           [](const Place& p) { p.sparse("rows.parquet", "PAR1", uint64_t{1} << 40); },
           {"rows.parquet", "cut off"}},
      },
      words);
  run_table("Parquet, kind", not_a_file("rows.parquet"), words);
}

TEST_CASE("hostile: arrays of rows") {
  auto words = eval_words();
  words.back() = "rows.json";
  const auto array = [](std::string name, std::string text, std::vector<std::string> says) {
    const int code = says.empty() ? 0 : 3;
    return Case{std::move(name), [=](const Place& p) { p.write("rows.json", text); },
                std::move(says), code};
  };
  const std::string good = "{\"input_ids\": [1, 2, 3]}";
  run_table("arrays",
            {
                array("good", "[\n" + good + ",\n" + good + "\n]\n", {}),
                array("JSON Lines", good + "\n" + good + "\n", {}),
                array("empty", "[]", {"rows.json", "no rows"}),
                array("not closed", "[" + good, {"rows.json:1"}),
                array("cut off", "[\n{\"input_ids\": [1, 2", {"rows.json:2"}),
                array("a comma too many", "[" + good + ",\n]", {"rows.json:2", "comma"}),
                array("no comma", "[" + good + "\n" + good + "]", {"rows.json:2"}),
                array("two arrays", "[" + good + "]\n[" + good + "]", {"rows.json:2"}),
                array("a bad row", "[" + good + ",\n\n{\"text\": 5}]", {"rows.json:3", "text"}),
                array("no row", "[1]", {"rows.json:1", "object"}),
                array("NUL bytes", "[" + std::string(4096, '\0'), {"rows.json:1"}),
                array("1,000,000 brackets", std::string(1'000'000, '['), {"rows.json:1"}),
                {"1 TB of holes",
                 [](const Place& p) { p.sparse("rows.json", "[{\"text\": \"", uint64_t{1} << 40); },
                 {"rows.json:1", "48 MiB"}},
            },
            words);
}

TEST_CASE("hostile: rows by standard input") {
  auto words = eval_words();
  words.back() = "-";
  run_table(
      "standard input",
      {{"good", [](const Place&) {}, {}, 0},
       {"no bytes", [](const Place& p) { p.write(kRowsFile, ""); }, {"no rows"}},
       {"a bad line",
        [](const Place& p) { p.write(kRowsFile, std::string(kGoodFile) + "x\n"); },
        {"standard input:2"}},
       {"gzip", [](const Place& p) { p.write(kRowsFile, gzip(kGoodFile)); }, {}, 0},
       {"gzip cut off", [](const Place& p) { p.write(kRowsFile, "\x1f\x8b\x08"); }, {"cut off"}},
       {"1 TB of holes",
        [](const Place& p) { p.sparse(kRowsFile, "{\"text\": \"", uint64_t{1} << 40); },
        {"standard input:1", "48 MiB"}}},
      words, kRowsFile);
  run_table("standard input, empty", {{"/dev/null", [](const Place&) {}, {"no rows"}}}, words,
            "/dev/null");
  run_table("standard input, endless", {{"/dev/zero", [](const Place&) {}, {"standard input:1"}}},
            words, "/dev/zero");
}
