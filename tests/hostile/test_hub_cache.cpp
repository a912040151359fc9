// Models by the name that the local hub cache has for them: references, snapshots, links to blobs.
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <filesystem>

#include "hostile/hostile.h"

using namespace hearth;
using namespace hearth::test;
namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

const std::string kModel = "hub/models--some-org--tiny";
const std::string kReference = kModel + "/refs/main";
const std::string kSnapshot = kModel + "/snapshots/abc123";

/// The model as the hub's client keeps it: files as blobs, a snapshot of links to them.
void cache_model(const Place& place) {
  for (const char* folder : {"/refs", "/blobs", "/snapshots/abc123"}) {
    fs::create_directories(place.path(kModel + folder));
  }
  place.write(kReference, "abc123");
  for (const auto& entry : fs::directory_iterator(place.path("model"))) {
    const std::string name = entry.path().filename().string();
    fs::copy(entry.path(), place.path(kModel + "/blobs/b-" + name));
    fs::create_symlink("../../blobs/b-" + name, place.path(kSnapshot + "/" + name));
  }
}

std::function<void(const Place&)> cached(std::function<void(const Place&)> change) {
  return [change = std::move(change)](const Place& place) {
    cache_model(place);
    change(place);
  };
}

Case reference(const std::string& name, const std::string& text, Words says = {"refs/main"}) {
  return {name, cached([=](const Place& p) { p.write(kReference, text); }), std::move(says)};
}

/// A file of the snapshot is a link to `target`.
Case link(const std::string& name, const std::string& file, const std::string& target, Words says,
          int code = 3) {
  if (code != 0) says.push_back(file);
  return {name, cached([=](const Place& p) {
            p.write("outside", p.read("model/" + file));
            fs::create_directories(p.path("hub/models--other--one/blobs"));
            p.write("hub/models--other--one/blobs/b", p.read("model/" + file));
            p.link(target[0] == '/' ? p.path(target.substr(1)) : target, kSnapshot + "/" + file);
          }),
          std::move(says), code};
}

Words eval_of(const std::string& model) {
  return {"eval", "--quiet", "--json", "--threads", "1", "--model", model, "--data", "rows.jsonl"};
}

/// The cache lies beside the model, where the program is started.
struct HubCache {
  HubCache() { ::setenv("HF_HUB_CACHE", "hub", 1); }
  ~HubCache() { ::unsetenv("HF_HUB_CACHE"); }
};

}  // namespace

TEST_CASE("hostile: references and snapshots of a hub cache") {
  const HubCache cache;
  const std::string download = "hf download some-org/tiny";
  std::vector<Case> table = {
      {"good", cache_model, {}, 0},
      {"a newline", cached([](const Place& p) { p.write(kReference, "abc123\r\n"); }), {}, 0},
      {"no cache", [](const Place&) {}, {download}},
      {"no reference", cached([](const Place& p) { p.remove(kReference); }), {download}},
      {"no snapshot", cached([](const Place& p) { p.remove(kSnapshot); }), {download}},
      {"a reference to nothing",
       cached([](const Place& p) { p.write(kReference, "abc124"); }),
       {download}},
      reference("no bytes", ""),
      reference("above", "../../.."),
      reference("two dots", ".."),
      reference("absolute", "/etc"),
      reference("a folder in it", "abc123/x"),
      reference("a NUL", std::string("abc123\0x", 8)),
      reference("two lines", "abc123\nabc124"),
      reference("a space", "abc123 "),
      reference("what writes to the terminal", "\x1b[2J\x07"),
      reference("no UTF-8", "\xff\xfe"),
      reference("200 letters", std::string(200, 'a')),
      reference("1 MB", std::string(1'000'000, 'a')),
      {"1 TB",
       cached([](const Place& p) { p.sparse(kReference, "abc", uint64_t{1} << 40); }),
       {"refs/main"}},
      {"a reference that is a FIFO",
       cached([](const Place& p) { p.fifo(kReference); }),
       {download}},
      {"a reference that is a device",
       cached([](const Place& p) { p.link("/dev/zero", kReference); }),
       {download}},
      {"a reference that is a link to itself",
       cached([](const Place& p) { p.link("main", kReference); }),
       {download}},
      {"a reference that is a directory",
       cached([](const Place& p) {
         p.remove(kReference);
         fs::create_directory(p.path(kReference));
       }),
       {download}},
  };
  for (const auto& [name, plant] :
       std::vector<std::pair<std::string, std::function<void(const Place&)>>>{
           {"a file", [](const Place& p) { p.remove(kSnapshot), p.write(kSnapshot, "x"); }},
           {"a FIFO", [](const Place& p) { p.fifo(kSnapshot); }},
           {"a link to itself", [](const Place& p) { p.link("abc123", kSnapshot); }},
           {"a link to nothing", [](const Place& p) { p.link("nowhere", kSnapshot); }}}) {
    table.push_back({"a snapshot that is " + name, cached(plant), {download}});
  }
  table.push_back({"a snapshot of nothing",
                   cached([](const Place& p) {
                     p.remove(kSnapshot);
                     fs::create_directory(p.path(kSnapshot));
                   }),
                   {"config.json"}});
  run_table("hub cache", table, eval_of("some-org/tiny"));
  run_table("hub cache, revision", {{"good", cache_model, {}, 0}}, eval_of("some-org/tiny@abc123"));
  for (const std::string name : {"some-org/tiny@../../..", "some-org/tiny@", "some-org/../tiny",
                                 "some-org/tiny/x", "some-org/", "/tiny", "../some-org",
                                 ".some-org/tiny", "some-org/ti\x1bny", "some-org/tiny\n"}) {
    run_table("hub cache, a name", {{name, cache_model, {"directory of a checkpoint"}}},
              eval_of(name));
  }
  run_table("hub cache, a name", {{"5,000 letters", cache_model, {"some-org/ttt", "so long"}}},
            eval_of("some-org/" + std::string(5'000, 't')));
}

TEST_CASE("hostile: links of a hub cache's snapshot") {
  const HubCache cache;
  const std::string config = "config.json", weights = "model.safetensors";
  const std::string follow = "--follow-links";
  std::vector<Case> table = {
      link("a blob by its whole path", config, "/" + kModel + "/blobs/b-config.json", {}, 0),
      link("out, upwards", config, "../../../../outside", {follow}),
      link("out, by its whole path", weights, "/outside", {follow}),
      link("the blobs of another model", config, "../../../models--other--one/blobs/b", {follow}),
      link("blobs and out again", weights, "../../blobs/../../../outside", {follow}),
      link("itself", config, "config.json", {}),
      link("nothing: a download that was cut off", weights, "../../blobs/b-cut", {}),
      link("a directory", config, "../../blobs", {}),
      link("a device", config, "//dev/zero", {}),
      {"a blob that leads out",
       cached([](const Place& p) {
         p.write("outside", p.read("model/config.json"));
         p.link("../../../outside", kModel + "/blobs/b-config.json");
       }),
       {config, follow}},
      {"two blobs that lead to each other",
       cached([](const Place& p) {
         p.link("b-2", kModel + "/blobs/b-config.json");
         p.link("b-config.json", kModel + "/blobs/b-2");
       }),
       {config}},
      {"blobs elsewhere",
       cached([](const Place& p) {
         fs::rename(p.path(kModel + "/blobs"), p.path("blobs"));
         p.link("../../blobs", kModel + "/blobs");
       }),
       {follow}},
      {"the whole cache elsewhere",
       cached([](const Place& p) {
         fs::rename(p.path("hub"), p.path("far"));
         p.link("far", "hub");
       }),
       {},
       0},
  };
  for (Case& kind : not_a_file(kModel + "/blobs/b-" + weights)) {
    const bool links =
        kind.name.find("link") != std::string::npos && kind.name.find("LFS") == std::string::npos;
    table.push_back({"a blob: " + kind.name, cached(kind.plant),
                     links ? Words{weights} : Words{weights, kind.says.back()}});
  }
  run_table("hub cache, links", table, eval_of("some-org/tiny"));
}
