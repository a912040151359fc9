// Stores, caches and samplers at the edges: other programs, odd names, places that refuse.
#include <fcntl.h>
#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "base/error.h"
#include "data/samples/row_cache.h"
#include "run_rows_fixture.h"
#include "support/raises.h"

using namespace hearth;
using namespace hearth::test;

namespace {

const Digest kOddKey{1, 2}, kOtherKey{3, 4};

/// A variable of the environment for the time of a scope.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* had = std::getenv(name)) had_ = had;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (had_) {
      ::setenv(name_, had_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> had_;
};

// An entry of `rows` rows.
void publish(const RowCache& cache, const Digest& key, size_t rows) {
  const auto lock = cache.lock(key, [] {});
  TokenStore store = store_of(std::vector<int64_t>(rows, 4));
  store.finish();
  cache.begin(key, store);
  CHECK(cache.publish(key, store, ""));
}

std::string entry_of(const RunRowsFixture& fixture) {
  for (const std::string& name : list_directory(fixture.cache())) {
    if (name.ends_with(".rows")) return name;
  }
  return "";
}

}  // namespace

TEST_CASE("odd samples: the cache's place is an absolute one") {
  const Variable home("HOME", "/home/of");
  {
    const Variable cache("XDG_CACHE_HOME", "/cache");
    CHECK(row_cache_directory() == "/cache/hearth/rows");
  }
  const Variable cache("XDG_CACHE_HOME", "cache");
  CHECK(row_cache_directory() == "/home/of/.cache/hearth/rows");
  const Variable no_home("HOME", "home");
  CHECK(row_cache_directory().empty());
}

TEST_CASE("odd samples: names that are no entries stay in a cache") {
  RunRowsFixture fixture;
  const RowCache first(fixture.cache(), 1);
  for (const char* name : {"x.rows", ".tmp-x", "note"}) {
    fixture.file(std::string("cache/hearth/rows/") + name, "text");
  }
  const RowCache cache(fixture.cache(), 1 << 20);
  publish(cache, kOddKey, 3);
  for (const char* name : {"x.rows", ".tmp-x", "note"}) {
    CHECK(file_info(fixture.cache() + "/" + name).kind == FileKind::regular);
  }
}

TEST_CASE("odd samples: a new entry stays, also where an older one has a later time") {
  RunRowsFixture fixture;
  const RowCache cache(fixture.cache(), 8000);
  publish(cache, kOddKey, 200);
  const std::string old = fixture.cache() + "/" + kOddKey.hex() + ".rows";
  const timespec later[2] = {{4'000'000'000, 0}, {4'000'000'000, 0}};
  REQUIRE(::utimensat(AT_FDCWD, old.c_str(), later, 0) == 0);
  publish(cache, kOtherKey, 200);
  CHECK_FALSE(cache.find(kOddKey, 0, 0));
  CHECK(cache.find(kOtherKey, 0, 0));
}

TEST_CASE("odd samples: rows that another process makes are waited for, and used") {
  RunRowsFixture fixture;
  const auto path = fixture.chats("rows.jsonl", 30);
  const auto expected = contents(*fixture.read({path}));
  const std::string entry = fixture.cache() + "/" + entry_of(fixture);
  const std::string made = read_file(entry);
  remove_file(entry);
  auto other = std::make_unique<FileLock>(
      fixture.cache() + "/.lock-" + entry.substr(fixture.cache().size() + 1, 2), "rows");
  int waited = 0, tokenised = 0;
  fixture.request.hooks.progress = [&](const std::string& what, uint64_t, uint64_t) {
    tokenised += what.starts_with("tokenizing") ? 1 : 0;
    if (!what.starts_with("waiting for another process")) return;
    ++waited;
    write_file_atomically(entry, made);
    other.reset();
  };
  CHECK(contents(*fixture.read({path})) == expected);
  CHECK(waited == 1);
  CHECK(tokenised == 0);
}

TEST_CASE("odd samples: a file that changes between its two readings is refused") {
  RunRowsFixture fixture;
  const auto path = fixture.chats("rows.jsonl", 30);
  bool changed = false;
  fixture.request.hooks.progress = [&](const std::string& what, uint64_t, uint64_t) {
    if (what.empty() && !changed) fixture.chats("rows.jsonl", 31);
    changed = changed || what.empty();
  };
  const Raised raised = raised_by([&] { fixture.read({path}); });
  CHECK(raised.code == ExitCode::input);
  CHECK(raised.says("rows.jsonl: changed while it was read"));
  CHECK(entry_of(fixture).empty());
}

TEST_CASE("odd samples: rows that outgrow memory without a cache, in the temporary directory") {
  RunRowsFixture fixture;
  const auto path = fixture.chats("rows.jsonl", 30);
  const auto expected = contents(*fixture.read({path}));
  fixture.request.cache = {"", 0, 0};
  fixture.request.hooks.progress = {};
  for (const std::string& place : {fixture.directory.path(), std::string("relative")}) {
    const Variable temporary("TMPDIR", place);
    CHECK(contents(*fixture.read({path})) == expected);
  }
  ::unsetenv("TMPDIR");
  CHECK(contents(*fixture.read({path})) == expected);
  const Variable temporary("TMPDIR", fixture.directory / "none");
  fixture.request.cache = {fixture.directory / "missing", 0, 0};
  const Raised raised = raised_by([&] { fixture.read({path}); });
  CHECK(raised.code == ExitCode::storage);
  CHECK(raised.says("/missing/"));
  CHECK(raised.says("; "));
  CHECK(raised.says("/none/"));
}

TEST_CASE("odd samples: a row larger than what is converted at once") {
  RunRowsFixture fixture;
  fixture.request.rows.skip_bad_rows = 1;
  const auto path = fixture.file("rows.jsonl", "{\"other\": \"" + std::string(5 << 20, 'x') +
                                                   "\"}\n{\"input_ids\": [1, 2]}\n");
  fixture.request.cache = {};
  CHECK(fixture.read({path})->summary().totals.rows == 1);
}

TEST_CASE("odd samples: a split without a trained token on one side") {
  RunRowsFixture fixture;
  const auto path = fixture.file("rows.jsonl", "{\"input_ids\": [1, 2]}\n{\"input_ids\": [3]}\n");
  fixture.request.val_size = 1;
  bool train = false, held = false;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    fixture.request.seed = seed;
    const Raised raised = raised_by([&] { fixture.read({path}); });
    CHECK(raised.code == ExitCode::input);
    train = train || raised.says("the rows left to train on have no trained token");
    held = held || raised.says("the rows for evaluation have no trained token");
  }
  CHECK(train);
  CHECK(held);
}

TEST_CASE("odd samples: a part of no rows, and steps of epochs that are not alike") {
  const TokenStore store = store_of({5, 3, 4, 2});
  RowSet none;
  none.add(store, std::vector<uint32_t>{}, 0.5);
  CHECK(none.rows_in_epoch() == 0);
  for (const bool shuffle : {false, true}) {
    for (const double passes : {2.0, 2.5}) {
      CAPTURE(shuffle, passes);
      RowSet rows;
      rows.add(store, std::nullopt, passes);
      const Sampler sampler(rows, {.seq_len = 8, .packing = true, .shuffle = shuffle});
      int64_t sequences = 0;
      for (int64_t epoch = 0; epoch < 3; ++epoch) sequences += sampler.sequences_in_epoch(epoch);
      CHECK(sampler.steps_for_epochs(3) == sequences);
    }
  }
  Sampler sampler(RowSet(store), {.seq_len = 8});
  for (const SamplerCursor& cursor :
       {SamplerCursor{0, -1}, {-1, 0}, {0, 4}, {int64_t{1} << 33, 0}}) {
    CHECK(raised_by([&] { sampler.seek(cursor); }).says("does not exist in this data"));
  }
}

TEST_CASE("odd samples: words of rows whose sizes do not fit") {
  const std::vector<uint32_t> words{1 << 2 | 1, 7};
  CHECK(check_row_words(words, 1, 1, 100, 50));
  CHECK_FALSE(check_row_words(words, 1, 2, 100, 50));
  CHECK_FALSE(check_row_words(words, 3, 1, 100, 50));
  CHECK_FALSE(check_row_words(words, 1, 1u << 30, 100, 50));
}

TEST_CASE("odd samples: stores under a right checksum whose parts do not fit") {
  RunRowsFixture fixture;
  const std::string path = fixture.directory / "store";
  TokenStore store = store_of({4, 4});
  store.finish();
  auto out = std::make_unique<OutputFile>(path);
  InputFile in(path);
  store.move_to_file(std::move(out), std::move(in));
  store.write_footer(kOddKey, "note");
  const std::string whole = read_file(path);
  // Of the footer: magic, version, key (two words), rows, words, bytes of notes, encoded.
  using Fields = std::vector<std::pair<size_t, uint64_t>>;
  const auto opened = [&](const Fields& fields, const std::string& more_words = "") {
    std::string changed = whole;
    changed.insert(40, more_words);
    const size_t footer = changed.size() - 128;
    for (const auto& [field, value] : fields) {
      std::memcpy(changed.data() + footer + 8 * field, &value, 8);
    }
    const Digest own = digest_of(changed.data() + footer, 112);
    std::memcpy(changed.data() + footer + 112, &own, sizeof own);
    write_file_atomically(path, changed);
    return raised_by([&] { TokenStore::open(path, kOddKey, 0, 0); });
  };
  CHECK(opened({}).code == ExitCode::done);
  for (const auto& [field, value] : Fields{{0, 1}, {1, 2}, {7, 2}}) {
    CHECK(opened({{field, value}}).says("unknown format"));
  }
  for (const size_t field : {4, 5, 6}) {
    CAPTURE(field);
    CHECK(opened({{field, uint64_t{1} << 62}}).says("sizes do not fit"));
    CHECK(opened({{field, 1}}).says("sizes do not fit"));
  }
  CHECK(opened({{5, 13}}, std::string(12, '\0')).says("words that belong to no row"));
  CHECK(opened({{4, 0}, {5, 16}}).says("words that belong to no row"));
}

TEST_CASE("odd samples: a store of more rows and words than one piece") {
  RunRowsFixture fixture;
  const std::string path = fixture.directory / "store";
  TokenStore store;
  auto out = std::make_unique<OutputFile>(path);
  InputFile in(path);
  store.move_to_file(std::move(out), std::move(in));
  const std::vector<int32_t> ids(16, 7);
  constexpr int64_t kRows = (1 << 16) + 3;
  for (int64_t row = 0; row < kRows; ++row) store.add(ids, ids, row + 1);
  store.finish();
  store.write_footer(kOddKey, "");
  const auto opened = TokenStore::open(path, kOddKey, 0, 8);
  CHECK(opened.store.rows() == kRows);
  CHECK(row_of(opened.store, kRows - 1).ids == ids);
}
