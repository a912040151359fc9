// The files of a checkpoint: index and shards, files that are none, links.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "checkpoint_fixture.h"

using namespace hearth;
using namespace hearth::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

void edit_index(const std::string& directory, const std::function<void(Json&)>& change) {
  const std::string path = directory + "/model.safetensors.index.json";
  Json index = parse_json(read_text(path), path);
  change(index);
  write_text(path, index.dump());
}

}  // namespace

TEST_CASE("checkpoint: index and shards must agree", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string model = directory / "model";
  const auto after = [&](const std::function<void(Json&)>& change) {
    fs::remove_all(model);
    make_checkpoint(small_config(), model);
    shard(model, 8);
    edit_index(model, change);
    return open_error(model);
  };
  const auto set = [&](const std::string& tensor, Json file) {
    return after([&](Json& index) { index["weight_map"][tensor] = std::move(file); });
  };
  CHECK(after([](Json&) {}).empty());
  CHECK_THAT(set(kQ, "model-1.safetensors"),
             ContainsSubstring("'" + std::string(kQ) + "' is not in 'model-1.safetensors' but in"));
  CHECK_THAT(set("nothing", "model-1.safetensors"), ContainsSubstring("nor in another shard"));
  CHECK_THAT(set(kQ, "model-99.safetensors"),
             ContainsSubstring("'model-99.safetensors', which does not exist"));
  for (const char* name :
       {"../model-1.safetensors", "/etc/x.safetensors", "a/b.safetensors", "model-1.txt",
        ".safetensors", "..", "", ".hidden.safetensors", "a\\b.safetensors"}) {
    INFO(name);
    CHECK_THAT(set(kQ, name), ContainsSubstring("a plain file name"));
  }
  CHECK_THAT(set(kQ, std::string("a\0.safetensors", 14)), ContainsSubstring("a plain file name"));
  CHECK_THAT(set(kQ, std::string(300, 'a') + ".safetensors"), ContainsSubstring("a plain file"));
  CHECK_THAT(set(kQ, "pytorch_model-1.bin"), ContainsSubstring("pickle"));
  CHECK_THAT(set(kQ, 3), ContainsSubstring("expected a file name"));
  CHECK_THAT(after([](Json& index) { index["weight_map"] = JsonObject{}; }),
             ContainsSubstring("weight_map"));
  CHECK_THAT(after([](Json& index) { index = JsonArray{}; }), ContainsSubstring("weight_map"));
  CHECK_THAT(after([&](Json& index) {
               std::erase_if(index["weight_map"].as_object(),
                             [](const auto& m) { return m.first == kQ; });
             }),
             ContainsSubstring("'" + std::string(kQ) + "' is not in the index"));

  // Keys that come twice, a tensor in two shards, a single file beside the shards.
  CHECK(after([](Json&) {}).empty());
  const std::string path = model + "/model.safetensors.index.json";
  std::string text = read_text(path);
  text.insert(text.find('{', text.find("weight_map")) + 1,
              "\"" + std::string(kQ) + "\": \"model-0.safetensors\",");
  write_text(path, text);
  CHECK_THAT(open_error(model), ContainsSubstring(kQ));

  CHECK(after([](Json&) {}).empty());
  std::vector<StoredTensor> tensors = load(model + "/model-1.safetensors");
  tensors.push_back(load(model + "/model-0.safetensors")[0]);
  store(model + "/model-1.safetensors", tensors);
  CHECK_THAT(open_error(model), ContainsSubstring("is also in"));

  CHECK(after([](Json&) {}).empty());
  remove_file(model + "/model-2.safetensors");
  edit_index(model, [](Json& index) {
    std::erase_if(index["weight_map"].as_object(),
                  [](const auto& m) { return m.second.as_string() == "model-2.safetensors"; });
  });
  CHECK_THAT(open_error(model), ContainsSubstring("is missing from all weight files"));

  // A shard may have the name of a single file.
  CHECK(after([](Json&) {}).empty());
  fs::rename(model + "/model-1.safetensors", model + "/model.safetensors");
  edit_index(model, [](Json& index) {
    for (auto& [tensor, file] : index["weight_map"].as_object()) {
      if (file.as_string() == "model-1.safetensors") file = "model.safetensors";
    }
  });
  CHECK(open_error(model).empty());

  CHECK(after([](Json&) {}).empty());
  store(model + "/model.safetensors", {});
  CHECK_THAT(open_error(model), ContainsSubstring("and an index that does not name it"));
}

TEST_CASE("checkpoint: files that are none are refused with help", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string model = directory / "model";
  const std::string lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n";
  const auto fresh = [&] {
    fs::remove_all(model);
    make_checkpoint(small_config(), model);
  };
  CHECK_THAT(open_error(directory / "none"), ContainsSubstring("none"));
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json",
                           "generation_config.json", "model.safetensors.index.json"}) {
    INFO(name);
    fresh();
    write_text(model + "/" + name, lfs);
    CHECK_THAT(open_error(model), ContainsSubstring("git lfs pull"));
    CHECK_THAT(open_error(model), ContainsSubstring(name));
    // Directories and pipes are not read.
    remove_file(model + "/" + name);
    make_directory(model + "/" + name);
    CHECK_THAT(open_error(model), ContainsSubstring(name));
    fs::remove(model + "/" + name);
    REQUIRE(mkfifo((model + "/" + name).c_str(), 0600) == 0);
    CHECK_THAT(open_error(model), ContainsSubstring(name));
  }
  fresh();
  remove_file(model + "/model.safetensors");
  for (const std::string name : {"pytorch_model.bin", "pytorch_model.bin.index.json", "old.pth"}) {
    write_text(model + "/" + name, "");
    CHECK_THAT(open_error(model), ContainsSubstring("pickles ('" + name + "')"));
    remove_file(model + "/" + name);
  }
  CHECK_THAT(open_error(model), ContainsSubstring("neither model.safetensors nor"));
  CHECK_THAT(open_error(model + "/config.json"), ContainsSubstring("expected the directory"));
  fresh();
  write_text(model + "/config.json", R"({"model_type": "qwen3_moe", "model_type": "qwen3_moe"})");
  CHECK_THAT(open_error(model), ContainsSubstring("model_type"));
}

TEST_CASE("checkpoint: links stay in the directory or in the cache's blobs", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string outside = directory / "outside";
  const std::string model = directory / "model";
  make_checkpoint(small_config(), outside);
  make_checkpoint(small_config(), model);
  CHECK(open_error(model).empty());

  // The directory itself may be a link; files in it may be links to each other.
  fs::create_directory_symlink(model, directory / "link");
  CHECK(open_error(directory / "link").empty());
  CHECK(open_error((directory / "link") + "//").empty());
  CHECK_THAT(error_of([] { Checkpoint checkpoint("/"); }), ContainsSubstring("/config.json"));
  fs::rename(model + "/model.safetensors", model + "/data");
  fs::create_symlink("data", model + "/model.safetensors");
  CHECK(open_error(model).empty());

  for (const char* name : {"model.safetensors", "config.json"}) {
    remove_file(model + "/" + name);
    fs::create_symlink(outside + "/" + name, model + "/" + name);
    CHECK_THAT(open_error(model), ContainsSubstring("following links"));
    CHECK_THAT(open_error(model), ContainsSubstring(std::string("model/") + name));
    CHECK(open_error(model, true).empty());
    remove_file(model + "/" + name);
    fs::copy(outside + "/" + name, model + "/" + name);
  }
  fs::create_symlink("/dev/zero", model + "/tokenizer.json");
  CHECK_THAT(open_error(model), ContainsSubstring("tokenizer.json"));
  CHECK_THAT(open_error(model, true), ContainsSubstring("tokenizer.json"));
  remove_file(model + "/tokenizer.json");
  fs::create_symlink("nowhere", model + "/tokenizer.json");
  CHECK_THAT(open_error(model), ContainsSubstring("a link to a file that does not exist"));

  // A hub cache.
  const std::string cache = directory / "models--a--b";
  const std::string snapshot = cache + "/snapshots/0123";
  fs::create_directories(snapshot);
  fs::create_directories(cache + "/blobs");
  for (const char* name : {"model.safetensors", "config.json"}) {
    fs::copy(outside + "/" + name, cache + "/blobs/blob-" + name);
    fs::create_symlink(std::string("../../blobs/blob-") + name, snapshot + "/" + name);
  }
  CHECK(open_error(snapshot).empty());
  fs::rename(cache + "/blobs/blob-config.json", cache + "/config.json");
  remove_file(snapshot + "/config.json");
  fs::create_symlink("../../config.json", snapshot + "/config.json");
  CHECK_THAT(open_error(snapshot), ContainsSubstring("following links"));
}
