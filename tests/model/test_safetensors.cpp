// The format: what must be refused, with which words, and what must be read.
#include <unistd.h>

#include "checkpoint/safetensors_header.h"
#include "checkpoint/safetensors_writer.h"
#include "model_fixtures.h"
#include "support/counted_memory.h"
#include "support/temporary_directory.h"

using namespace hearth;
using namespace hearth::test;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Hostile {
  std::string header;
  uint64_t data = 0;  // bytes after the header
  std::string message;
};

std::string parse_error(const std::string& header, uint64_t data) {
  return error_of([&] { parse_safetensors_header(header, 8 + header.size() + data, "file"); });
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

std::string repeated(const std::string& text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

}  // namespace

TEST_CASE("safetensors: headers that break the format are refused", "[safetensors]") {
  const std::string a = entry("a", "F32", "[2]", "[0,8]");
  const std::vector<Hostile> corpus = {
      {"", 0, "does not begin with '{'"},
      {" {}", 0, "does not begin with '{'"},
      {"[]", 0, "does not begin with '{'"},
      {"{", 0, "expected a string"},
      {"{}x", 0, "goes on after"},
      {"{}{}", 0, "goes on after"},
      {"{" + a, 8, "expected '}'"},
      {"{" + a + ",}", 8, "expected a string"},
      {"{\"a\xff\":1}", 0, "not valid UTF-8"},
      {"{\"\xed\xa0\x80\":1}", 0, "not valid UTF-8"},
      {"{\"a\n\":1}", 0, "control character"},
      {"{\"\\ud800\":1}", 0, "lone surrogate"},
      {"{\"\\ud800\\u0041\":1}", 0, "lone surrogate"},
      {"{\"\\udc00\":1}", 0, "lone surrogate"},
      {"{\"\\u12g4\":1}", 0, "bad \\u escape"},
      {"{\"\\u12", 0, "bad \\u escape"},
      {"{\"\\uzzzz\":1}", 0, "bad \\u escape"},
      {"{\"\\ud800\\ue000\":1}", 0, "lone surrogate"},
      {"{\"\\x\":1}", 0, "unknown escape"},
      {"{\"\\", 0, "ends inside a string"},
      {"{\"a", 0, "ends inside a string"},
      {"{\"a\":1}", 0, "tensor 'a': expected an object of dtype, shape and data_offsets, found"},
      {"{\"a\":", 0, "tensor 'a': expected an object of dtype, shape and data_offsets, found"},
      {"{\"a\":{}}", 0, "tensor 'a': dtype: is missing"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "data_offsets: is missing"},
      {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, "shape: is missing"},
      {"{\"a\":{\"dtype\":4,\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
       "file: tensor 'a': dtype: expected the name of a type, found '4' (byte 14"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", 8,
       "tensor 'a': shape: expected a list of whole numbers from 0 to 2^63-1, found '2'"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}", 8,
       "tensor 'a': unknown field 'x'"},
      {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
       "tensor 'a': dtype: stands there twice"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
       "shape: stands there twice"},
      {"{" + a + "," + a + "}", 8, "tensor 'a' twice"},
      {"{" + a + "," + entry("\\u0061", "F32", "[2]", "[8,16]") + "}", 16, "tensor 'a' twice"},
      {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "\"__metadata__\" twice"},
      {"{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, "metadata key 'k' twice"},
      {"{\"__metadata__\":{\"k\":1}}", 0, "not a string, for the key 'k'"},
      {"{\"__metadata__\":{\"k\":null}}", 0, "not a string"},
      {"{\"__metadata__\":[]}", 0, "expected '{'"},
      {"{\"__metadata__\":{\"k\":", 0, "expected a string"},
      {"{" + entry("a", "F33", "[2]", "[0,8]") + "}", 8, "unknown type 'F33'"},
      {"{" + entry("a", "f32", "[2]", "[0,8]") + "}", 8, "unknown type 'f32'"},
      {"{" + entry("a", "F32", "[-2]", "[0,8]") + "}", 8,
       "tensor 'a': shape: expected whole numbers from 0 to 2^63-1, found '-2'"},
      {"{" + entry("a", "F32", "[2.0]", "[0,8]") + "}", 8, "expected whole numbers"},
      {"{" + entry("a", "F32", "[2e0]", "[0,8]") + "}", 8, "expected whole numbers"},
      {"{" + entry("a", "F32", "[2E0]", "[0,8]") + "}", 8, "expected whole numbers"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2", 8, "expected ']'"},
      {"{" + entry("a", "F32", "[02]", "[0,8]") + "}", 8, "expected whole numbers"},
      {"{" + entry("a", "F32", "[\"2\"]", "[0,8]") + "}", 8, "shape: expected whole numbers"},
      {"{" + entry("a", "F32", "[18446744073709551616]", "[0,8]") + "}", 8,
       "expected whole numbers"},
      {"{" + entry("a", "F32", "[9223372036854775808]", "[0,8]") + "}", 8,
       "to 2^63-1, found '9223372036854775808'"},
      {"{" + entry("a", "F32", "[2]", "[0]") + "}", 8,
       "tensor 'a': data_offsets: expected two whole numbers, found 1"},
      {"{" + entry("a", "F32", "[2]", "[0,8,8]") + "}", 8, "expected two whole numbers, found 3"},
      {"{" + entry("a", "F32", "[2]", "[-1,7]") + "}", 8,
       "data_offsets: expected two whole numbers, found '-1'"},
      {"{" + entry("a", "F32", "[2]", "[0,null]") + "}", 8, "two whole numbers, found null"},
      {"{" + entry("model.layers.0.q.weight", "F32", "[2]", "\"0-8\"") + "}", 8,
       "file: tensor 'model.layers.0.q.weight': data_offsets: expected two whole numbers, found a "
       "string"},
      {"{" + entry("a", "F32", "true", "[0,8]") + "}", 8, "found true or false"},
      {"{" + entry("a", "F32", "{}", "[0,8]") + "}", 8, "found an object"},
      {"{" + entry("a", "F32", "[[2]]", "[0,8]") + "}", 8, "found a list"},
      {"{" + entry("a", "F32", "[2]", "[8,0]") + "}", 8, "reversed or past the end"},
      {"{" + entry("a", "F32", "[4]", "[0,16]") + "}", 8, "past the end"},
      {"{" + entry("a", "F32", "[2]", "[18446744073709551608,18446744073709551615]") + "}", 8,
       "past the end"},
      {"{" + entry("a", "F32", "[3]", "[0,8]") + "}", 8, "shape [3] of type F32 takes 12"},
      {"{" + entry("a", "BF16", "[2]", "[0,8]") + "}", 8, "takes 4"},
      {"{" + entry("a", "F4", "[3]", "[0,1]") + "}", 1, "not a whole number of bytes"},
      {"{" + entry("a", "U8", "[2,9223372036854775807]", "[0,8]") + "}", 8, "is too large"},
      {"{" + entry("a", "U8", "[4294967296,4294967296]", "[0,0]") + "}", 0, "is too large"},
      {"{" + entry("a", "F64", "[2305843009213693952]", "[0,0]") + "}", 0, "is too large"},
      {"{" + entry("a", "F32", "[2]", "[4,12]") + "}", 12, "after a gap"},
      {"{" + a + "," + entry("b", "F32", "[2]", "[12,20]") + "}", 20, "'b': its data begins at 12"},
      {"{" + a + "," + entry("b", "F32", "[2]", "[4,12]") + "}", 12, "inside another tensor's"},
      {"{" + a + "," + entry("b", "F32", "[2]", "[0,8]") + "}", 8, "inside another tensor's"},
      {"{" + a + "," + entry("b", "F32", "[0]", "[4,4]") + "}", 8, "inside another tensor's"},
      {"{" + a + "}", 9, "1 bytes follow the data of the last tensor"},
      {"{" + a + "}", 6, "past the end"},
      {"{}", 5, "5 bytes follow the data of the last"},
      {"{" + entry("a", "U8", "[" + repeated("1,", 64) + "1]", "[0,1]") + "}", 1,
       "more than 64 dimensions"},
      {repeated("{\"a\":", 100'000), 0, "unknown field"},
  };
  for (const Hostile& hostile : corpus) {
    INFO(hostile.header.substr(0, 200));
    CHECK_THAT(parse_error(hostile.header, hostile.data), ContainsSubstring(hostile.message));
  }
}

TEST_CASE("safetensors: a header that is longer than the file or the limit is none",
          "[safetensors]") {
  const std::string message = "longer than the file or 100 MB";
  CHECK_THAT(error_of([] { parse_safetensors_header("{}", 7, "file"); }),
             ContainsSubstring(message));
  CHECK_THAT(error_of([] { parse_safetensors_header("{}", 9, "file"); }),
             ContainsSubstring(message));
  const char first = '{';
  const std::string_view huge(&first, kMaxSafetensorsHeader + 1);  // its size is looked at alone
  CHECK_THAT(error_of([&] { parse_safetensors_header(huge, uint64_t{1} << 40, "file"); }),
             ContainsSubstring(message));
}

TEST_CASE("safetensors: sizes that are none", "[safetensors]") {
  CHECK_FALSE(safetensors_bytes({"a", "F33", {2}, 0, 0}));
  CHECK_FALSE(safetensors_bytes({"a", "F32", {-2}, 0, 0}));
  CHECK(safetensors_bytes({"a", "F32", {2}, 0, 0}) == uint64_t{8});
}

TEST_CASE("safetensors: every escape of a name is read", "[safetensors]") {
  const std::string name = R"(\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac\uffff)";
  const std::string text = "{" + entry(name, "U8", "[1]", "[0,1]") + "}";
  const SafetensorsHeader header = parse_safetensors_header(text, 8 + text.size() + 1, "file");
  CHECK(header.entries[0].name == "\"\\/\b\f\n\r\tA\u00e9\u20ac\uffff");
}

TEST_CASE("safetensors: names from outside cannot write to the terminal", "[safetensors]") {
  const std::string name = "\\u001b[31m" + std::string(5000, 'x');
  const std::string message = parse_error("{" + entry(name, "F33", "[2]", "[0,8]") + "}", 8);
  CHECK(message.find('\x1b') == std::string::npos);
  CHECK(message.size() < 600);
}

TEST_CASE("safetensors: legal headers are read", "[safetensors]") {
  const std::string text =
      "{\"b\" : {\"shape\":[ ], \"data_offsets\":[ 8, 12 ],\"dtype\":\"F32\"},\t" +
      entry("a", "F32", "[1,2]", "[0,8]") + ",\n" + entry("empty", "I64", "[3,0]", "[8,8]") + "," +
      entry("odd", "F6_E2M3", "[4]", "[12,15]") + "," +
      entry("\\u00e9\\ud83d\\ude00", "BOOL", "[1]", "[15,16]") +
      ",\"__metadata__\":{\"format\":\"pt\",\"\\n\":\"\\\"\"}} \r\n";
  const SafetensorsHeader header = parse_safetensors_header(text, 8 + text.size() + 16, "file");
  REQUIRE(header.entries.size() == 5);
  CHECK(header.entries[0].name == "a");
  CHECK(header.entries[0].shape == std::vector<int64_t>{1, 2});
  CHECK(header.entries[1].name == "empty");
  CHECK(header.entries[2].name == "b");
  CHECK(header.entries[2].shape.empty());
  CHECK(header.entries[4].name == "\u00e9\U0001F600");
  CHECK(header.data_begin == 8 + text.size());
  CHECK(header.metadata ==
        std::vector<std::pair<std::string, std::string>>{{"format", "pt"}, {"\n", "\""}});
  CHECK(parse_error("{}", 0).empty());
}

TEST_CASE("safetensors: memory of a refusal is a small multiple of the header", "[safetensors]") {
  const std::vector<std::string> bombs = {
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[" + repeated("0,", 2'000'000),
      "{\"a\":{\"dtype\":\"U8\",\"shape\":" + repeated("[", 4'000'000),
      "{\"__metadata__\":{" + repeated("\"\":\"\",", 600'000),
      "{" + repeated(entry("a", "U8", "[0]", "[0,0]") + ",", 90'000),
      "{\"" + repeated("\\u0000", 700'000),
  };
  for (const std::string& text : bombs) {
    INFO(text.substr(0, 60));
    start_counting();
    CHECK_FALSE(parse_error(text, 0).empty());
    CHECK(counted_peak() < static_cast<int64_t>(8 * text.size()));
  }
}

TEST_CASE("safetensors: files that are none are refused with help", "[safetensors]") {
  const TemporaryDirectory directory;
  const std::string path = directory / "model.safetensors";
  const auto refused = [&](const std::string& bytes) {
    write_text(path, bytes);
    const std::string message = error_of([&] { SafetensorsFile file(path); });
    CHECK_THAT(message, ContainsSubstring(path));
    return message;
  };
  CHECK_THAT(refused(""), ContainsSubstring("length field alone takes 8"));
  CHECK_THAT(refused("1234567"), ContainsSubstring("7 bytes"));
  CHECK_THAT(refused(std::string(8, '\0')), ContainsSubstring("does not begin"));
  CHECK_THAT(refused(std::string(8, '\xff')), ContainsSubstring("above the limit"));
  CHECK_THAT(refused(raw_safetensors("{}", "").substr(0, 9)), ContainsSubstring("cut off"));
  CHECK_THAT(refused(std::string("\x01\xe1\xf5\x05\0\0\0\0{}", 10)),
             ContainsSubstring("100000001 is above the limit"));
  CHECK_THAT(refused("version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 12\n"),
             ContainsSubstring("git lfs pull"));
  CHECK_THAT(refused(std::string("PK\x03\x04") + "archive/data.pkl"), ContainsSubstring("pickle"));
  CHECK_THAT(refused("\x80\x02}q\x01(X\x05"), ContainsSubstring("pickle"));
  CHECK_THAT(error_of([&] { SafetensorsFile file(directory / "none.safetensors"); }),
             ContainsSubstring("none.safetensors"));
  CHECK_THAT(error_of([&] { SafetensorsFile file(directory.path()); }),
             ContainsSubstring(directory.path()));

  // A header of 0x0280 bytes begins as a pickle does, and is none.
  write_text(path, raw_safetensors("{}" + std::string(0x027e, ' '), ""));
  CHECK(SafetensorsFile(path).header().entries.empty());
}

TEST_CASE("safetensors: what is written is read back", "[safetensors]") {
  const TemporaryDirectory directory;
  const std::string path = directory / "x.safetensors";
  std::vector<SafetensorsEntry> entries(4);
  entries[0] = {"w", "BF16", {2, 3}, 0, 0};
  entries[1] = {"empty", "F32", {0}, 0, 0};
  entries[2] = {"scalar \"x\"", "F64", {}, 0, 0};
  entries[3] = {"bytes", "U8", {5}, 0, 0};
  std::string data(12 + 8 + 5, '\0');
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 37);

  SafetensorsWriter writer(path, entries, {{"note", "kept"}});
  CHECK(writer.take_chunks().empty());  // not asked for
  for (const char byte : data) writer.write(&byte, 1);
  const Digest digest = writer.close();
  CHECK(digest == digest_of(read_text(path)));

  const SafetensorsFile file(path);
  REQUIRE(file.header().entries.size() == 4);
  CHECK(file.header().data_begin % 8 == 0);
  CHECK(file.header().metadata ==
        std::vector<std::pair<std::string, std::string>>{{"note", "kept"}, {"format", "pt"}});
  std::string read;
  for (size_t i = 0; i < 4; ++i) {
    const SafetensorsEntry& entry = file.header().entries[i];
    CHECK(entry.name == entries[i].name);
    CHECK(entry.dtype == entries[i].dtype);
    CHECK(entry.shape == entries[i].shape);
    std::string part(entry.end - entry.begin, '\0');
    file.read(entry, part.data(), part.size(), 0);
    read += part;
  }
  CHECK(read == data);
  char middle[3];
  file.read(file.header().entries[0], middle, 3, 5);
  CHECK(std::string(middle, 3) == data.substr(5, 3));
  CHECK_THROWS_AS(file.read(file.header().entries[0], middle, 3, 10), std::logic_error);

  // A file that shrinks after it was opened is an error, not a crash.
  REQUIRE(truncate(path.c_str(), static_cast<off_t>(file.header().data_begin + 6)) == 0);
  std::string rest(12, '\0');
  CHECK_THAT(error_of([&] { file.read(file.header().entries[0], rest.data(), 12, 0); }),
             ContainsSubstring(path));
}

TEST_CASE("safetensors: a writer that got too much or too little is a bug", "[safetensors]") {
  const TemporaryDirectory directory;
  SafetensorsWriter writer(directory / "x", {{"w", "U8", {4}, 0, 0}}, {{"format", "np"}});
  CHECK_THROWS_AS(writer.write("12345", 5), std::logic_error);
  writer.write("123", 3);
  CHECK_THROWS_AS(writer.close(), std::logic_error);
}

TEST_CASE("safetensors: every type of the format has its size", "[safetensors]") {
  int known = 0;
  for (const char* name :
       {"BOOL",    "U8",          "I8",          "U16", "I16",     "U32",    "I32",     "U64",
        "I64",     "F16",         "BF16",        "F32", "F64",     "C64",    "F8_E4M3", "F8_E5M2",
        "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F4",  "F6_E2M3", "F6_E3M2"}) {
    INFO(name);
    CHECK(safetensors_bits(name).has_value());
    const auto type = safetensors_dtype(name);
    if (!type) continue;
    ++known;
    CHECK(safetensors_name(*type) == name);
    CHECK(static_cast<int>(size_of(*type)) * 8 == *safetensors_bits(name));
  }
  CHECK(known == 7);
}
