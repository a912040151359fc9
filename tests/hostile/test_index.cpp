// model.safetensors.index.json and its shards, links of a model directory.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "hostile/hostile.h"

using namespace hearth;
using namespace hearth::test;
namespace fs = std::filesystem;

namespace {

constexpr const char* kIndex = "model/model.safetensors.index.json";
const std::string kFirst = "model-00001-of-00002.safetensors";
const std::string kSecond = "model-00002-of-00002.safetensors";

std::function<void(const Place&)> index(std::string text) {
  return [text = std::move(text)](const Place& place) {
    place.shard();
    place.write(kIndex, text);
  };
}

/// The final norm's file name, as raw JSON.
std::function<void(const Place&)> file_name(std::string raw) {
  return [raw = std::move(raw)](const Place& place) {
    place.shard([&](std::string& text) {
      const std::string key = "\"model.norm.weight\": ";
      const size_t at = text.find(key) + key.size();
      text.replace(at, text.find_first_of(",\n", at) - at, raw);
    });
  };
}

std::function<void(const Place&)> sharded(std::function<void(const Place&)> change) {
  return [change = std::move(change)](const Place& place) {
    place.shard();
    change(place);
  };
}

/// A hub cache: snapshots/main/ of links into blobs/, `model` a link to it.
void hub_cache(const Place& place) {
  fs::create_directories(place.path("hub/blobs"));
  fs::create_directories(place.path("hub/snapshots/main"));
  for (const auto& entry : fs::directory_iterator(place.path("model"))) {
    const std::string name = entry.path().filename().string();
    fs::rename(entry.path(), place.path("hub/blobs/b-" + name));
    fs::create_symlink("../../blobs/b-" + name, place.path("hub/snapshots/main/" + name));
  }
  place.link("hub/snapshots/main", "model");
}

void link_out(const Place& place, const std::string& name) {
  fs::rename(place.path("model/" + name), place.path("outside"));
  place.link("../outside", "model/" + name);
}

}  // namespace

TEST_CASE("hostile: the index") {
  const std::string name = "model.safetensors.index.json", norm = "model.norm.weight";
  run_table(
      "index",
      {
          {"two shards", [](const Place& p) { p.shard(); }, {}, 0},
          {"no JSON", index("weights"), {name, "line 1"}},
          {"no bytes", index(""), {name}},
          {"a list", index("[]"), {name, "weight_map"}},
          {"no map", index("{\"metadata\": {}}"), {name, "weight_map"}},
          {"an empty map", index("{\"weight_map\": {}}"), {name, "weight_map"}},
          {"a map that is a list", index("{\"weight_map\": []}"), {name, "weight_map"}},
          {"a byte order mark", index("\xef\xbb\xbf{\"weight_map\": {}}"), {name, "byte order"}},
          {"UTF-16", index(std::string("\xff\xfe{\0", 4)), {name}},
          {"no UTF-8", index("{\"weight_map\": {\"\xc3\": \"a.safetensors\"}}"), {name, "UTF-8"}},
          {"a NUL byte", index(std::string("{\"weight_map\": \0}", 17)), {name, "NUL"}},
          {"100,000 brackets", index(std::string(100'000, '[')), {name, "nested"}},
          {"cut off", index("{\"weight_map\": {\"a\": \"b.safe"), {name}},
          {"text behind it",
           [](const Place& p) { p.shard([](std::string& text) { text += "{}"; }); },
           {name}},
          {"a comma too many", index("{\"weight_map\": {\"a\": \"b.safetensors\",}}"), {name}},
          {"above the limit of a file",
           [](const Place& p) {
             p.shard();
             p.sparse(kIndex, "{", uint64_t{1} << 40);
           },
           {name, "1099511627776"}},
          {"weight_map twice",
           index("{\"weight_map\": {}, \"weight_map\": {}}"),
           {name, "weight_map", "duplicate"}},
          {"a tensor twice",
           [](const Place& p) {
             p.shard([](std::string& text) {
               const std::string key = "\"model.norm.weight\": ";
               text.insert(text.find(key), key + "\"" + kFirst + "\",\n");
             });
           },
           {name, norm, "duplicate"}},
          {"a file above", file_name("\"../model.safetensors\""), {name, norm}},
          {"an absolute file", file_name("\"/etc/x.safetensors\""), {name, norm}},
          {"a file below", file_name("\"a/b.safetensors\""), {name, norm}},
          {"a backslash", file_name("\"a\\\\b.safetensors\""), {name, norm}},
          {"a NUL in the name", file_name("\"a\\u0000.safetensors\""), {name, norm}},
          {"an escape in the name", file_name("\"\\u001b[2J.safetensors\""), {name, norm}},
          {"an empty name", file_name("\"\""), {name, norm}},
          {"two dots", file_name("\"..\""), {name, norm}},
          {"a hidden name", file_name("\".x.safetensors\""), {name, norm}},
          {"the ending alone", file_name("\".safetensors\""), {name, norm}},
          {"another ending", file_name("\"config.json\""), {name, norm}},
          {"a pickle", file_name("\"pytorch_model-1.bin\""), {name, norm, "pickle"}},
          {"a name of 300 letters",
           file_name("\"" + std::string(300, 'n') + ".safetensors\""),
           {name, norm}},
          {"a number", file_name("1"), {name, norm}},
          {"null", file_name("null"), {name, norm}},
          {"a list", file_name("[\"" + kFirst + "\"]"), {name, norm}},
          {"a file that is not there",
           file_name("\"model-00003-of-00002.safetensors\""),
           {name, "model-00003-of-00002.safetensors"}},
          {"the other shard", file_name("\"" + kSecond + "\""), {norm}},
          {"a tensor that no shard has",
           [](const Place& p) {
             p.shard([](std::string& text) {
               text.insert(text.find("\"model.norm.weight\""),
                           "\"ghost.weight\": \"" + kFirst + "\",\n");
             });
           },
           {name, "ghost.weight"}},
          {"an index beside a single file",
           [](const Place& p) {
             const std::string single = p.read("model/model.safetensors");
             p.shard();
             p.write("model/model.safetensors", single);
           },
           {"model.safetensors"}},
      },
      eval_words());
}

TEST_CASE("hostile: shards") {
  run_table(
      "shards",
      {
          {"a missing shard",
           sharded([](const Place& p) { p.remove("model/" + kSecond); }),
           {kSecond}},
          {"an empty shard",
           sharded([](const Place& p) { p.write("model/" + kSecond, ""); }),
           {kSecond}},
          {"a tensor in two shards",
           sharded([](const Place& p) { p.write("model/" + kSecond, p.read("model/" + kFirst)); }),
           {kSecond, "also in"}},
          {"a tensor that the index does not name",
           [](const Place& p) {
             p.shard([](std::string& text) {
               const size_t at = text.find("\"model.norm.weight\"");
               const size_t end = text.find('\n', at);
               text.erase(at, end - at);
               if (text[text.find_last_not_of(" \n", at - 1)] == ',') {
                 const size_t next = text.find_first_not_of(" \n", at);
                 if (text[next] == '}') text.erase(text.find_last_of(',', at), 1);
               }
             });
           },
           {"model.norm.weight"}},
      },
      eval_words());
  run_table(
      "a shard, kind",
      [] {
        std::vector<Case> table = not_a_file("model/" + kSecond);
        for (Case& row : table) row.plant = sharded(row.plant);
        return table;
      }(),
      eval_words());
  run_table(
      "the index, kind",
      [] {
        std::vector<Case> table = not_a_file(kIndex);
        for (Case& row : table) row.plant = sharded(row.plant);
        return table;
      }(),
      eval_words());
}

TEST_CASE("hostile: links of a model directory") {
  const auto inside = [](const Place& p) {
    fs::rename(p.path("model/model.safetensors"), p.path("model/weights.safetensors"));
    p.link("weights.safetensors", "model/model.safetensors");
  };
  std::vector<Case> table = {
      {"the directory a link",
       [](const Place& p) {
         fs::rename(p.path("model"), p.path("elsewhere"));
         p.link("elsewhere", "model");
       },
       {},
       0},
      {"a link inside", inside, {}, 0},
      {"a hub cache", hub_cache, {}, 0},
      {"a link out of a hub cache",
       [](const Place& p) {
         hub_cache(p);
         p.write("outside", p.read("hub/blobs/b-config.json"));
         p.link("../../../outside", "hub/snapshots/main/config.json");
       },
       {"config.json", "--follow-links"}},
  };
  for (const std::string name :
       {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}) {
    table.push_back({name + " a link out",
                     [=](const Place& p) { link_out(p, name); },
                     {name, "--follow-links"}});
  }
  run_table("links", table, eval_words());
  auto followed = eval_words();
  followed.push_back("--follow-links");
  run_table("links, --follow-links",
            {{"a link out", [](const Place& p) { link_out(p, "model.safetensors"); }, {}, 0},
             {"a link to a device",
              [](const Place& p) { p.link("/dev/null", "model/model.safetensors"); },
              {"model.safetensors", "device"}}},
            followed);
}
