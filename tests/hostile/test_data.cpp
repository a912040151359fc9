// Data files: rows that are none, texts that are none, files that are something else; the same by
// standard input.
#include <catch2/catch_test_macros.hpp>
#include <fstream>

#include "hostile/hostile.h"
#include "support/packed.h"

using namespace hearth;
using namespace hearth::test;

namespace {

constexpr const char* kRows = "rows.jsonl";
constexpr const char* kGood = "{\"input_ids\": [1, 2, 3]}\n";

/// The third line, between good ones.
Case line(const std::string& name, const std::string& text, std::vector<std::string> says = {}) {
  says.push_back("rows.jsonl:3:");
  return {name,
          [=](const Place& p) { p.write(kRows, std::string(kGood) + kGood + text + "\n" + kGood); },
          says};
}

Case accepted(const std::string& name, const std::string& text) {
  return {name, [=](const Place& p) { p.write(kRows, text); }, {}, 0};
}

Case whole(const std::string& name, const std::string& text, std::vector<std::string> says) {
  return {name, [=](const Place& p) { p.write(kRows, text); }, std::move(says)};
}

/// A long file in pieces: the memory of this process counts as the child's until it starts.
void write_pieces(const Place& place, const std::string& head, char fill, size_t megabytes,
                  const std::string& tail) {
  std::ofstream out(place.path(kRows), std::ios::binary);
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

TEST_CASE("hostile: rows of JSON Lines") {
  const std::string chat =
      "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, "
      "{\"role\": \"assistant\", \"content\": \"b\"}]}";
  const std::string nul("{\"text\": \"a\0b\"}", 14);
  run_table(
      "data rows",
      {
          accepted("no newline at the end", std::string(kGood) + "{\"input_ids\": [1, 2]}"),
          accepted("CRLF", "{\"input_ids\": [1, 2, 3]}\r\n{\"text\": \"a\"}\r\n"),
          accepted("a byte order mark", std::string("\xef\xbb\xbf") + kGood),
          accepted("empty lines", std::string("\n\n") + kGood + "\n  \n"),
          accepted("a row of one id among others", std::string(kGood) + "{\"input_ids\": [1]}\n"),
          accepted("a row without trained tokens among others",
                   std::string(kGood) + "{\"input_ids\": [1, 2], \"labels\": [-100, -100]}\n"),
          accepted("keys of no meaning",
                   "{\"input_ids\": [1, 2, 3], \"id\": {\"a\": [1, null]}}\n"),
          accepted("escapes", "{\"text\": \"\\ud83d\\ude00\\u0000\\n\"}\n"),
          accepted("a chat", chat + "\n"),
          line("no JSON", "hello"),
          line("cut off", "{\"input_ids\": [1, 2"),
          line("a comma too many", "{\"input_ids\": [1, 2,]}"),
          line("two objects", "{\"input_ids\": [1, 2]} {\"input_ids\": [1, 2]}"),
          line("a byte order mark inside", std::string("\xef\xbb\xbf") + "{\"text\": \"a\"}"),
          line("no UTF-8", "{\"text\": \"\xc3\x28\"}", {"UTF-8"}),
          line("overlong UTF-8", "{\"text\": \"\xc0\xaf\"}", {"UTF-8"}),
          line("a surrogate in UTF-8", "{\"text\": \"\xed\xa0\x80\"}", {"UTF-8"}),
          line("UTF-8 cut off", "{\"text\": \"\xe2\x82", {"UTF-8"}),
          line("Latin-1", "{\"text\": \"caf\xe9\"}", {"UTF-8"}),
          line("a NUL byte", nul, {"NUL"}),
          line("a control character", "{\"text\": \"a\tb\"}"),
          line("a lone surrogate", "{\"text\": \"\\ud800\"}"),
          line("surrogates the wrong way round", "{\"text\": \"\\ude00\\ud83d\"}"),
          line("half an escape", "{\"text\": \"\\u12\"}"),
          line("an unknown escape", "{\"text\": \"\\x41\"}"),
          line("a carriage return inside a string", "{\"text\": \"a\rb\"}"),
          line("a key twice", "{\"text\": \"a\", \"text\": \"b\"}", {"duplicate", "text"}),
          line("a key twice inside",
               "{\"messages\": [{\"role\": \"user\", \"role\": \"assistant\", \"content\": \"\"}]}",
               {"duplicate", "role"}),
          line("a string", "\"text\"", {"object"}),
          line("a number", "7", {"object"}),
          line("null", "null", {"object"}),
          line("an array", "[{\"text\": \"a\"}]", {"array"}),
          line("no key that is known", "{\"txet\": \"a\"}"),
          line("no key", "{}"),
          line("two kinds", "{\"text\": \"a\", \"input_ids\": [1, 2]}", {"--format"}),
          line("a text that is null", "{\"text\": null}"),
          line("a text that is a number", "{\"text\": 5}", {"text"}),
          line("a text that is a list", "{\"text\": [\"a\"]}", {"text"}),
          line("an empty text", "{\"text\": \"\"}"),
          line("100 brackets", "{\"a\": " + std::string(100, '[') + std::string(100, ']') + "}",
               {"nested"}),
          line("1,000,000 brackets", std::string(1'000'000, '['), {"nested"}),
          line("a key of 1,000,000 letters",
               "{\"" + std::string(1'000'000, 'k') + "\": 1, \"" + std::string(1'000'000, 'k') +
                   "\": 2}",
               {"duplicate"}),
          line("a value that writes to the terminal",
               "{\"input_ids\": \"\\u001b[2J\\u0007\\r\\n\"}", {"input_ids"}),
          line("a number of 100,000 digits",
               "{\"input_ids\": [" + std::string(100'000, '9') + "]}"),
          line("no ids", "{\"input_ids\": []}", {"input_ids"}),
          line("ids that are text", "{\"input_ids\": \"1 2 3\"}", {"input_ids"}),
          line("an id that is text", "{\"input_ids\": [1, \"2\"]}", {"input_ids[1]"}),
          line("an id that is a float", "{\"input_ids\": [1, 2.0]}", {"input_ids[1]", "2.0"}),
          line("an id that is true", "{\"input_ids\": [1, true]}", {"input_ids[1]"}),
          line("an id that is null", "{\"input_ids\": [1, null]}", {"input_ids[1]"}),
          line("a list of lists", "{\"input_ids\": [[1, 2]]}", {"input_ids[0]"}),
          line("an id below 0", "{\"input_ids\": [1, -1]}", {"input_ids[1]", "-1"}),
          line("an id of -100", "{\"input_ids\": [1, -100]}", {"input_ids[1]"}),
          line("an id of the vocabulary's size", "{\"input_ids\": [1, 300]}",
               {"input_ids[1]", "300"}),
          line("an id of 2^31", "{\"input_ids\": [1, 2147483648]}", {"input_ids[1]"}),
          line("an id of 2^32 + 1", "{\"input_ids\": [1, 4294967297]}", {"input_ids[1]"}),
          line("an id of 2^63", "{\"input_ids\": [1, 9223372036854775808]}", {"input_ids[1]"}),
          line("an id of 1e400", "{\"input_ids\": [1, 1e400]}"),
          line("labels too few", "{\"input_ids\": [1, 2, 3], \"labels\": [1, 2]}", {"labels"}),
          line("labels too many", "{\"input_ids\": [1, 2], \"labels\": [1, 2, 3]}", {"labels"}),
          line("no label", "{\"input_ids\": [1, 2], \"labels\": []}", {"labels"}),
          line("a label of -1", "{\"input_ids\": [1, 2], \"labels\": [1, -1]}", {"labels[1]"}),
          line("a label out of range", "{\"input_ids\": [1, 2], \"labels\": [1, 300]}",
               {"labels[1]", "300"}),
          line("a label that is text", "{\"input_ids\": [1, 2], \"labels\": [1, \"2\"]}",
               {"labels[1]"}),
          line("labels that are a number", "{\"input_ids\": [1, 2], \"labels\": 2}", {"labels"}),
          line("padding", "{\"input_ids\": [1, 0], \"attention_mask\": [1, 0]}",
               {"attention_mask"}),
          line("a mask of another length", "{\"input_ids\": [1, 2], \"attention_mask\": [1]}",
               {"attention_mask"}),
          line("no messages", "{\"messages\": []}", {"messages"}),
          line("messages that are text", "{\"messages\": \"hi\"}", {"messages"}),
          line("a message that is text", "{\"messages\": [\"hi\"]}", {"messages[0]"}),
          line("no role", "{\"messages\": [{\"content\": \"a\"}]}", {"messages[0].role"}),
          line("an empty role", "{\"messages\": [{\"role\": \"\", \"content\": \"a\"}]}",
               {"messages[0].role"}),
          line("a role that is a number", "{\"messages\": [{\"role\": 1, \"content\": \"a\"}]}",
               {"messages[0].role"}),
          line("content that is a number",
               "{\"messages\": [{\"role\": \"assistant\", \"content\": 3}]}",
               {"messages[0].content"}),
          line("content that is an image",
               "{\"messages\": [{\"role\": \"assistant\", \"content\": [{\"type\": \"image\"}]}]}",
               {"messages[0].content[0]"}),
          line("no assistant", "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}",
               {"assistant"}),
      },
      eval_words());
}

TEST_CASE("hostile: whole data files") {
  run_table(
      "data files",
      {
          whole("no bytes", "", {"rows.jsonl", "no rows"}),
          whole("empty lines alone", "\n\n \n", {"rows.jsonl", "no rows"}),
          whole("a byte order mark alone", "\xef\xbb\xbf", {"rows.jsonl"}),
          whole("no trained token", "{\"input_ids\": [1, 2, 3], \"labels\": [-100, -100, -100]}\n",
                {"rows.jsonl", "no trained token"}),
          whole("a trained token in the first place alone",
                "{\"input_ids\": [1, 2, 3], \"labels\": [1, -100, -100]}\n",
                {"rows.jsonl", "no trained token"}),
          whole("one id a row", "{\"input_ids\": [1]}\n{\"input_ids\": [2]}\n",
                {"rows.jsonl", "no trained token"}),
          whole("an array over lines", "[\n{\"text\": \"a\"},\n{\"text\": \"b\"}\n]\n",
                {"rows.jsonl:1"}),
          whole("UTF-16", std::string("\xff\xfe{\0\"\0t\0", 8), {"rows.jsonl:1"}),
          whole("Parquet", "PAR1" + std::string(60, '\0'), {"Parquet", "read_parquet"}),
          whole("Arrow", "ARROW1" + std::string(60, '\0'), {"Arrow", "datasets"}),
          whole("NUL bytes", std::string(4096, '\0'), {"rows.jsonl:1"}),
          {"1 TB of holes",
           [](const Place& p) { p.sparse(kRows, "{\"text\": \"", uint64_t{1} << 40); },
           {"rows.jsonl:1", "64 MiB"}},
          {"a line of 64 MiB",
           [](const Place& p) { write_pieces(p, "{\"text\": \"", 'a', 64, "\"}\n"); },
           {"rows.jsonl:1", "64 MiB"}},
          {"a line of 64 MiB behind good ones",
           [](const Place& p) {
             write_pieces(p, std::string(kGood) + kGood + "{\"text\": \"", 'a', 64, "\"}\n");
           },
           {"rows.jsonl:3", "64 MiB"}},
          {"16 MiB of brackets",
           [](const Place& p) { write_pieces(p, "", '[', 16, "\n"); },
           {"rows.jsonl:1", "nested"}},
      },
      eval_words());
  run_table("data, kind", not_a_file(kRows), eval_words());
  run_table("data, absent", {{"none", [](const Place& p) { p.remove(kRows); }, {kRows}}},
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
              {"rows.txt", "64 MiB"}}},
            text);
}

TEST_CASE("hostile: packed data files") {
  const std::string good_gzip = gzip(kGood), good_zstd = zstd(kGood);
  std::string flipped = good_gzip;
  flipped[flipped.size() - 6] ^= 1;
  std::string unsure = good_zstd;
  unsure.back() ^= 1;
  const std::string frame("\x28\xb5\x2f\xfd", 4);
  run_table(
      "packed rows",
      {
          {"gzip", [=](const Place& p) { p.write(kRows, good_gzip); }, {}, 0},
          {"zstd", [=](const Place& p) { p.write(kRows, good_zstd); }, {}, 0},
          whole("gzip, cut off", good_gzip.substr(0, good_gzip.size() - 3), {kRows, "cut off"}),
          whole("gzip, the magic alone", "\x1f\x8b", {kRows, "cut off"}),
          whole("gzip, zeros", std::string("\x1f\x8b\x08\0", 4) + std::string(60, '\0'),
                {kRows, "damaged"}),
          whole("gzip, another checksum", flipped, {kRows, "damaged"}),
          whole("gzip and more", good_gzip + "and more", {kRows, "behind the end"}),
          whole("zstd, cut off", good_zstd.substr(0, good_zstd.size() - 3), {kRows, "cut off"}),
          whole("zstd, the magic alone", frame, {kRows, "cut off"}),
          whole("zstd, zeros", frame + std::string(60, '\0'), {kRows}),
          whole("zstd, another checksum", unsure, {kRows, "damaged"}),
          whole("zstd, a window of 2^41", frame + std::string("\0\xf8\0\0\0\0", 6),
                {kRows, "window"}),
          whole("zstd, a size of 2^63",
                frame + std::string("\xe0\xff\xff\xff\xff\xff\xff\xff\x7f\0\0", 11), {kRows}),
          whole("zstd, a dictionary that is not there",
                frame + std::string("\x23\x01\x02\x03\x04\x05\x01\0\0a", 10), {kRows}),
          whole("packed twice", gzip(good_gzip), {kRows, "packed twice"}),
          whole("packed Parquet", zstd("PAR1"), {kRows, "Parquet"}),
          whole("nothing, packed", gzip(""), {kRows, "no rows"}),
          whole("a bad row, packed", gzip(std::string(kGood) + "\n7\n"), {"rows.jsonl:3"}),
          whole("gzip: 1 GiB of blank lines", repeated_gzip('\n', 1024),
                {kRows, "only blank lines"}),
          whole("gzip: a row of 1 GiB", repeated_gzip('[', 1024), {"rows.jsonl:1", "64 MiB"}),
          whole("zstd: a row of 1 GiB", repeated_zstd('[', 1024), {"rows.jsonl:1", "64 MiB"}),
      },
      eval_words());
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
                 {"rows.json:1", "64 MiB"}},
            },
            words);
}

TEST_CASE("hostile: rows by standard input") {
  auto words = eval_words();
  words.back() = "-";
  run_table("standard input",
            {{"good", [](const Place&) {}, {}, 0},
             {"no bytes", [](const Place& p) { p.write(kRows, ""); }, {"no rows"}},
             {"a bad line",
              [](const Place& p) { p.write(kRows, std::string(kGood) + "x\n"); },
              {"standard input:2"}},
             {"gzip", [](const Place& p) { p.write(kRows, gzip(kGood)); }, {}, 0},
             {"gzip cut off", [](const Place& p) { p.write(kRows, "\x1f\x8b\x08"); }, {"cut off"}},
             {"1 TB of holes",
              [](const Place& p) { p.sparse(kRows, "{\"text\": \"", uint64_t{1} << 40); },
              {"standard input:1", "64 MiB"}}},
            words, kRows);
  run_table("standard input, empty", {{"/dev/null", [](const Place&) {}, {"no rows"}}}, words,
            "/dev/null");
  run_table("standard input, endless", {{"/dev/zero", [](const Place&) {}, {"standard input:1"}}},
            words, "/dev/zero");
}
