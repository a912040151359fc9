// Names of models, of their files, and of new directories.
#include <cstdlib>
#include <filesystem>
#include <map>

#include "checkpoint/checkpoint_init.h"
#include "checkpoint/hub_cache.h"
#include "checkpoint/model_files.h"
#include "checkpoint/new_directory.h"
#include "checkpoint/weight_index.h"
#include "model/weight_copy.h"
#include "model_fixtures.h"
#include "support/stored_tensors.h"
#include "support/temporary_directory.h"

using namespace hearth;
using namespace hearth::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

/// Sets variables of the environment, and what they were before when it dies.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& values) {
    for (const auto& [name, value] : values) {
      const char* old = std::getenv(name.c_str());
      before_[name] = old ? old : "";
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~Environment() {
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  std::map<std::string, std::string> before_;
};

}  // namespace

TEST_CASE("names: a model of the hub is looked for where its client keeps it") {
  const TemporaryDirectory directory;
  const auto cache = [&](const std::string& hub) {
    const std::string folder = directory / (hub + "/models--Org-1--a.b_C");
    fs::create_directories(folder + "/refs");
    fs::create_directories(folder + "/snapshots/0123");
    write_text(folder + "/refs/main", "0123\r\n");
    return folder;
  };
  const std::string name = "Org-1/a.b_C";
  std::map<std::string, std::string> variables = {
      {"HF_HUB_CACHE", ""}, {"HF_HOME", ""}, {"XDG_CACHE_HOME", ""}, {"HOME", directory.path()}};
  for (const auto& [variable, hub] :
       std::vector<std::pair<std::string, std::string>>{{"HOME", ".cache/huggingface/hub"},
                                                        {"XDG_CACHE_HOME", "xdg/huggingface/hub"},
                                                        {"HF_HOME", "hf/hub"},
                                                        {"HF_HUB_CACHE", "cache"}}) {
    const std::string folder = cache(hub);
    if (variable != "HOME") variables[variable] = directory / hub.substr(0, hub.find('/'));
    const Environment environment(variables);
    CHECK(find_model(name) == folder + "/snapshots/0123");
    CHECK(find_model(name + "@0123") == folder + "/snapshots/0123");
    CHECK_THAT(error_of([&] { find_model(name + "@old"); }),
               ContainsSubstring("revision old") && ContainsSubstring("--revision old"));
    CHECK_THAT(error_of([&] { find_model("Org-1/other"); }),
               ContainsSubstring("'hf download Org-1/other'"));
    for (const char* commit : {"", "../x", "a b"}) {
      write_text(folder + "/refs/bad", commit);
      CHECK_THAT(error_of([&] { find_model(name + "@bad"); }), ContainsSubstring("refs/bad"));
    }
  }
  // No such names: directories, there or not.
  fs::create_symlink("nowhere", directory / "dangling");
  for (const std::string& other :
       {directory / "cache", directory / "dangling", std::string("none"), std::string("a/b/c"),
        std::string("a/.b"), std::string("/b"), std::string("a/b@c/d"), std::string("a/b{"),
        std::string("a/b@"), "a/" + std::string(129, 'b')}) {
    CHECK(find_model(other) == other);
  }
}

TEST_CASE("names: a new directory has a name of its own") {
  const TemporaryDirectory directory;
  const fs::path before = fs::current_path();
  fs::current_path(directory.path());
  for (const char* name : {"", ".", "..", "/", "x/..", "x/."}) {
    INFO("'" << name << "'");
    CHECK_THAT(error_of([&] { NewDirectory result(name); }, ExitCode::usage),
               ContainsSubstring("expected the name of a new directory"));
  }
  NewDirectory("plain").publish();
  NewDirectory("deep/er//").publish();
  CHECK_THAT(error_of([&] { NewDirectory result("/"); }, ExitCode::usage),
             ContainsSubstring("expected the name"));
  CHECK_THAT(error_of([&] { NewDirectory result("/tmp"); }, ExitCode::usage),
             ContainsSubstring("/tmp: exists already"));
  fs::create_symlink("nowhere", "dangling");
  CHECK_THAT(error_of([&] { NewDirectory result("dangling"); }, ExitCode::usage),
             ContainsSubstring("exists already"));
  fs::current_path(before);
  CHECK(fs::is_directory(directory / "plain"));
  CHECK(fs::is_directory(directory / "deep/er"));
}

TEST_CASE("names: links below the root of the file system") {
  // A model directory there has nothing above it, and links to anything stay in it.
  CHECK(model_file("/", "proc", false) == "//proc");
  const TemporaryDirectory directory;
  fs::create_directories(directory / "blobs");
  fs::create_directories(directory / "snapshots/a/b");
  write_text(directory / "blobs/x", "");
  fs::create_symlink("../../../blobs/x", directory / "snapshots/a/b/x");
  CHECK_NOTHROW(model_file(directory / "snapshots/a/b", "x", false));
}

TEST_CASE("names: heads of files that look like pickles") {
  for (const std::string head : {"\x80\x01", "\x80\x06", "\x80", "\x80\x02}q\x01(X\x05{"}) {
    CHECK(error_of([&] { refuse_foreign(head, "file"); }).empty());
  }
  CHECK_THAT(error_of([] { refuse_foreign("\x80\x05", "file"); }), ContainsSubstring("pickle"));
}

TEST_CASE("names: an index that is written is read back") {
  const WeightMap map = {{"b", "2.safetensors"}, {"a", "1.safetensors"}};
  const std::string text = weight_index_text(map, 5, 20);
  CHECK(parse_weight_index(text, "index") == WeightMap{map[1], map[0]});
  CHECK_THAT(error_of([] { parse_weight_index("{}", "index"); }), ContainsSubstring("weight_map"));
  CHECK_THAT(error_of([] { parse_weight_index("{\"weight_map\": 3}", "index"); }),
             ContainsSubstring("weight_map"));
  CHECK_THAT(
      error_of([] { parse_weight_index("{\"weight_map\": {\"a\": \".safetensors\"}}", "index"); }),
      ContainsSubstring("a plain file name"));
}

TEST_CASE("names: numbers that are not finite are found in every type") {
  double doubles[] = {1, 2, HUGE_VAL};
  CHECK(find_not_finite(DType::f64, doubles, 3) == 2);
  CHECK(find_not_finite(DType::f64, doubles, 2) == 2);
  const int32_t integers[] = {-1, 0x7f800000};
  CHECK(find_not_finite(DType::i32, integers, 2) == 2);
}

TEST_CASE("names: a stored copy of a tied head is looked at, too") {
  const TemporaryDirectory directory;
  const std::string model = directory / "model";
  make_checkpoint(changed(small_config(), "tie_word_embeddings", true), model);
  edit(model, [](std::vector<StoredTensor>& tensors) {
    StoredTensor head = named(tensors, "model.embed_tokens.weight");
    head.entry.name = "lm_head.weight";
    tensors.push_back(head);
  });
  CHECK_NOTHROW(Checkpoint(model).check_finite());
  edit(model, [](std::vector<StoredTensor>& tensors) {
    named(tensors, "lm_head.weight").data.replace(4, 4, "\xff\xff\xff\xff");
  });
  CHECK_THAT(error_of([&] { Checkpoint(model).check_finite(); }),
             ContainsSubstring("'lm_head.weight': element 1 is not finite"));
}

TEST_CASE("names: tokenizer files of a new checkpoint are looked for") {
  const TemporaryDirectory directory;
  const std::string config = directory / "config.json";
  write_text(config, small_config().dump());
  const auto refused_with = [&](const std::string& tokenizer) {
    return error_of([&] { init_checkpoint(config, directory / "new", 1, tokenizer); });
  };
  CHECK_THAT(refused_with(config), ContainsSubstring("expected a directory"));
  make_directory(directory / "empty");
  CHECK_THAT(refused_with(directory / "empty"), ContainsSubstring("no tokenizer files in it"));
}
