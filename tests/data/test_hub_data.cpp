// Data sets by name in the hub cache: revisions, splits, subsets, what is not there.
#include <cstdlib>
#include <filesystem>

#include "data/row_fixture.h"
#include "data/samples/data_files.h"
#include "data/samples/hub_data.h"
#include "support/raises.h"

namespace hearth::test {
namespace {

/// A cache in the fixture's directory, named by HF_HUB_CACHE.
struct HubFixture : RowFixture {
  std::string set = directory / "datasets--org--chats";
  HubFixture() {
    setenv("HF_HUB_CACHE", directory.path().c_str(), 1);
    for (const char* folder : {"", "/refs", "/blobs", "/snapshots"}) make_directory(set + folder);
    write_file_atomically(set + "/refs/main", "abc\n");
    write_file_atomically(set + "/blobs/1", "{\"text\": \"a\"}\n");
    make_directory(set + "/snapshots/abc");
  }
  ~HubFixture() { unsetenv("HF_HUB_CACHE"); }
  HubFixture(const HubFixture&) = delete;
  HubFixture& operator=(const HubFixture&) = delete;

  void add(const std::string& name, const std::string& revision = "abc") const {
    const std::string root = set + "/snapshots/" + revision + "/";
    for (size_t at = name.find('/'); at != std::string::npos; at = name.find('/', at + 1)) {
      const std::string folder = root + name.substr(0, at);
      if (file_info(folder).kind == FileKind::none) make_directory(folder);
    }
    std::filesystem::create_symlink(set + "/blobs/1", root + name);
  }
  /// Names without the snapshot's folder, and the passes of the first.
  std::vector<std::string> found(const std::string& given,
                                 const std::string& option = "--data") const {
    std::vector<std::string> names;
    for (const DataFile& file : find_data_files({given}, option, option == "--data")) {
      CHECK(file.path.starts_with(set + "/snapshots/"));
      names.push_back(file.path.substr(set.size() + 11));
      if (file.passes != 1) names.push_back("x" + std::to_string(file.passes).substr(0, 3));
    }
    return names;
  }
  std::string refused(const std::string& given, const std::string& option = "--data") const {
    const Raised raised = raised_by([&] { found(given, option); });
    CHECK(raised.code == ExitCode::input);
    return raised.message;
  }
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("hub data: splits by the names of files") {
  CHECK(split_of_file("data/train-00000-of-00002.parquet") == "train");
  CHECK(split_of_file("data/train_sft-00001-of-00002-a1b2.parquet") == "train_sft");
  CHECK(split_of_file("my-Train.jsonl") == "train");
  CHECK(split_of_file("data/dev.jsonl.gz") == "validation");
  CHECK(split_of_file("validation/rows.jsonl") == "validation");
  CHECK(split_of_file("x_eval_2.json") == "test");
  CHECK(split_of_file("test/train.jsonl") == "train");
  CHECK(split_of_file("constraints.jsonl").empty());
  CHECK(split_of_file("a-of-1.jsonl").empty());
  CHECK(split_of_file("a-x-of-1.jsonl").empty());
}

TEST_CASE("hub data: the split, the revision and the weight that a name asks for") {
  const HubFixture f;
  f.add("README.md");
  f.add("data/train-00001-of-00002.parquet");
  f.add("data/train-00000-of-00002.parquet");
  f.add("data/test-00000-of-00001.parquet");
  CHECK(f.found("org/chats") ==
        Names{"abc/data/train-00000-of-00002.parquet", "abc/data/train-00001-of-00002.parquet"});
  CHECK(f.found("org/chats:test") == Names{"abc/data/test-00000-of-00001.parquet"});
  CHECK(f.found("org/chats:test:0.5") == Names{"abc/data/test-00000-of-00001.parquet", "x0.5"});
  CHECK(f.found("org/chats", "--eval-data") == Names{"abc/data/test-00000-of-00001.parquet"});
  f.add("data/dev.jsonl");
  CHECK(f.found("org/chats", "--eval-data") == Names{"abc/data/dev.jsonl"});
  make_directory(f.set + "/snapshots/old");
  f.add("rows.jsonl", "old");
  CHECK(f.found("org/chats@old") == Names{"old/rows.jsonl"});
  CHECK(f.found("org/chats@abc:test").size() == 1);
  CHECK(f.read({f.set + "/snapshots/old/rows.jsonl"}).size() == 1);  // a link
}

TEST_CASE("hub data: what is not there is said with what to do") {
  const HubFixture f;
  CHECK(has(f.refused("org/chats"), "no data files in"));
  f.add("data/train_sft-00000-of-00001.parquet");
  f.add("data/test_sft-00000-of-00001.parquet");
  CHECK(has(f.refused("org/chats"), "no split 'train' in"));
  CHECK(has(f.refused("org/chats"),
            "it has 'test_sft', 'train_sft', so name one (--data "
            "org/chats:test_sft)"));
  CHECK(f.found("org/chats:train_sft").size() == 1);
  f.add("de/train.jsonl");
  f.add("en/train.jsonl");
  CHECK(has(f.refused("org/chats"), "several subsets ('de', 'en')"));
  CHECK(has(f.refused("org/none"), "neither a file or directory nor in the hub cache (" +
                                       f.directory.path() + "/datasets--org--none)"));
  CHECK(has(f.refused("org/none"), "hf download --repo-type dataset org/none"));
  CHECK(has(f.refused("org/chats@none"), "revision none"));
  // Names of files are no names of data sets.
  CHECK(find_data_files({"org/chats.jsonl"}, "--data", true)[0].path == "org/chats.jsonl");
  CHECK(find_data_files({"a/b/c"}, "--data", true)[0].path == "a/b/c");
}

}  // namespace hearth::test
