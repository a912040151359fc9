// Manifests of saved states whose own digest is right and whose content is absurd.
#include <catch2/catch_test_macros.hpp>

#include "hostile/saved_state.h"

using namespace hearth;
using namespace hearth::test;

namespace {

using Words = std::vector<std::string>;

/// Verify with every row, the other ways to a saved state, which are longer, with some.
void run_readers(const std::string& title, const std::vector<Case>& table) {
  const std::vector<std::pair<Words, size_t>> readers = {
      {{"verify", kState}, 1},
      {{"inspect", kState, "--json"}, 5},
      {{"export", "--from-state", kState, "--out", "exported"}, 5},
      {{"train", "--quiet", "--threads", "1", "run.yaml"}, 12}};
  for (const auto& [words, every] : readers) {
    std::vector<Case> some;
    for (size_t i = 0; i < table.size(); i += every) some.push_back(table[i]);
    run_table(title + ", " + words[0], some, words);
  }
}

Case manifest_row(const std::string& name, std::function<void(const Place&)> plant, Words says = {},
                  int code = 4) {
  if (code != 0) says.push_back("manifest.json");
  return {name, std::move(plant), std::move(says), code};
}

Case member(const std::string& key, const Json& value) {
  return manifest_row(key + " = " + value.dump().substr(0, 60),
                      manifest([=](Json& members) { members[key] = value; }), {key});
}

/// Of the entry of the first file, the weights.
Case entry(const std::string& key, const Json& value, const std::string& says) {
  return manifest_row("file: " + key + " = " + value.dump().substr(0, 60),
                      manifest([=](Json& members) { members["files"].as_array()[0][key] = value; }),
                      {says});
}

Case without(const std::string& key) {
  const auto erase = [key](Json& object) {
    std::erase_if(object.as_object(), [&](const auto& m) { return m.first == key; });
  };
  return manifest_row("no " + key, manifest([=](Json& members) {
                        erase(members.find(key) ? members : members["files"].as_array()[0]);
                      }),
                      {key});
}

/// A component's name that names no file of this state.
Case name(const std::string& component) {
  return manifest_row("component '" + component.substr(0, 40) + "'", manifest([=](Json& members) {
                        Json& file = members["files"].as_array()[0];
                        file["component"] = component;
                        file["file"] = component + ".safetensors";
                      }),
                      {"component"});
}

std::vector<Case> members() {
  const uint64_t huge = uint64_t{1} << 63;
  std::vector<Case> table;
  table.push_back(manifest_row("good", manifest([](Json&) {}), {}, 0));
  table.push_back(manifest_row("files in another order", manifest([](Json& m) {
                                 JsonArray& files = m["files"].as_array();
                                 std::swap(files.front(), files.back());
                               }),
                               {}, 0));
  for (const char* key : {"format", "version", "step", "chunk_bytes", "files", "root", "extra",
                          "component", "file", "bytes", "digest", "chunks"}) {
    table.push_back(without(key));
  }
  table.push_back(manifest_row("another format", manifest([](Json& m) { m["format"] = "pt"; }),
                               {"not a manifest of saved state"}));
  for (const Json& version : {Json(0), Json(2), Json(-1), Json(1.0), Json("1"), Json(huge)}) {
    table.push_back(member("version", version));
  }
  for (const Json& step : {Json(-1), Json(1.0), Json("1"), Json(huge), Json(nullptr)}) {
    table.push_back(member("step", step));
  }
  table.push_back(
      manifest_row("of another step", manifest([](Json& m) { m["step"] = 2; }), {"step 2"}));
  table.push_back(manifest_row("of step 2^63 - 1", manifest([](Json& m) { m["step"] = INT64_MAX; }),
                               {"step 9223372036854775807"}));
  for (const Json& bytes : {Json(0), Json(1), Json(-1), Json(huge), Json("64 MiB")}) {
    table.push_back(member("chunk_bytes", bytes));
  }
  for (const Json& files : {Json(nullptr), Json(JsonObject{}), Json("weights")}) {
    table.push_back(member("files", files));
  }
  table.push_back(manifest_row("a file that is a number",
                               manifest([](Json& m) { m["files"].as_array()[0] = 1; }),
                               {"object"}));
  table.push_back(
      manifest_row("no files", manifest([](Json& m) { m["files"] = JsonArray{}; }), {}));
  table.push_back(manifest_row("a component twice", manifest([](Json& m) {
                                 JsonArray& files = m["files"].as_array();
                                 files.push_back(files.front());
                               }),
                               {"twice"}));
  table.push_back(manifest_row("20,000 components twice", manifest([](Json& m) {
                                 JsonArray& files = m["files"].as_array();
                                 Json file = files.front();
                                 for (int i = 0; i < 20'000; ++i) {
                                   file["component"] = "c" + std::to_string(i);
                                   file["file"] = "c" + std::to_string(i) + ".safetensors";
                                   files.push_back(file);
                                 }
                                 files.push_back(file);
                               }),
                               {"twice"}));
  table.push_back(manifest_row(
      "another root", manifest([](Json& m) { m["root"] = std::string(32, '0'); }), {"root"}));
  for (const Json& root : {Json("f91a"), Json(std::string(32, 'F')), Json(7), Json(nullptr)}) {
    table.push_back(member("root", root));
  }
  return table;
}

std::vector<Case> files() {
  std::vector<Case> table;
  for (const std::string bad : {"../weights", "/etc/passwd", "a/weights", "", ".", "..", "Weights",
                                "weights ", "w\\x", "\x1b[2J\x07"}) {
    table.push_back(name(bad));
  }
  table.push_back(name(std::string("weights\0x", 9)));
  table.push_back(name(std::string(65, 'w')));
  table.push_back(name(std::string(100'000, 'w')));
  for (const char* file : {"../weights.safetensors", "/etc/passwd", "manifest.json", "weights",
                           "moment1.safetensors", ""}) {
    table.push_back(entry("file", file, "name of its component"));
  }
  table.push_back(entry("component", 7, "component"));
  table.push_back(entry("file", 7, "file"));
  for (const Json& bytes :
       {Json(-1), Json(1.5), Json("1"), Json(uint64_t{1} << 63), Json(UINT64_MAX), Json(nullptr)}) {
    table.push_back(entry("bytes", bytes, "bytes"));
  }
  for (const Json& bytes : {Json(0), Json(INT64_MAX), Json(int64_t{1} << 40)}) {
    table.push_back(entry("bytes", bytes, "chunks do not fit"));
  }
  for (const Json& chunks :
       {Json(nullptr), Json(JsonObject{}), Json(JsonArray{}), Json(JsonArray{7}),
        Json(JsonArray{"f91a"}), Json(JsonArray{std::string(32, '0'), std::string(32, '0')}),
        Json(JsonArray(100'000, Json(std::string(32, '0'))))}) {
    table.push_back(entry("chunks", chunks, "chunks"));
  }
  for (const Json& digest : {Json(nullptr), Json(""), Json(std::string(31, '0')), Json(0)}) {
    table.push_back(entry("digest", digest, "digest"));
  }
  return table;
}

std::vector<Case> texts() {
  const auto inside = [](std::string more) {
    return manifest_text([=](std::string& text) { text += more; });
  };
  const auto bytes = [](std::string content) {
    return state([=](const Place& p) { p.write(kManifest, content); });
  };
  std::vector<Case> table = {
      manifest_row("nothing sealed", manifest_text([](std::string& text) { text.clear(); })),
      manifest_row("no JSON", manifest_text([](std::string& text) { text = "{\n  \"format\""; })),
      manifest_row("a list", manifest_text([](std::string& text) { text = "[1"; })),
      manifest_row("a key twice", inside(",\n  \"step\": 1"), {"duplicate", "step"}),
      manifest_row("a key twice inside", inside(",\n  \"more\": {\"a\": 1, \"a\": 1}"),
                   {"duplicate"}),
      manifest_row("no UTF-8", inside(",\n  \"more\": \"\xc3\x28\""), {"UTF-8"}),
      manifest_row("a NUL", inside(std::string(",\n  \"more\": \"\0\"", 14))),
      manifest_row("NaN", inside(",\n  \"more\": NaN")),
      manifest_row("1e400", inside(",\n  \"more\": 1e400")),
      manifest_row("2^64", inside(",\n  \"more\": 18446744073709551616")),
      manifest_row("a byte order mark",
                   manifest_text([](std::string& text) { text = "\xef\xbb\xbf" + text; })),
      manifest_row("100,000 brackets", inside(",\n  \"more\": " + std::string(100'000, '[')),
                   {"nested"}),
      manifest_row("no bytes", bytes(""), {"cut short"}),
      manifest_row("only a brace", bytes("{}\n"), {"cut short"}),
      manifest_row("zeros", bytes(std::string(4096, '\0')), {"digest"}),
      manifest_row("a line behind it",
                   state([](const Place& p) { p.write(kManifest, p.read(kManifest) + "\n"); }),
                   {"digest"}),
      manifest_row("the seal of another", state([](const Place& p) {
                     std::string text = p.read(kManifest);
                     text[text.size() - 5] = text[text.size() - 5] == '0' ? '1' : '0';
                     p.write(kManifest, text);
                   }),
                   {"digest"}),
      manifest_row("100 MB of holes",
                   state([](const Place& p) { p.sparse(kManifest, "{", 100'000'000); }),
                   {"100000000"}),
      manifest_row("none", state([](const Place& p) { p.remove(kManifest); })),
  };
  for (Case& kind : not_a_file(kManifest)) {
    table.push_back(manifest_row(kind.name, state(kind.plant)));
  }
  return table;
}

}  // namespace

TEST_CASE("hostile: members of a state's manifest") {
  run_readers("manifest", members());
  run_readers("manifest, files", files());
}

TEST_CASE("hostile: texts of a state's manifest") { run_readers("manifest, text", texts()); }
