// A store of rows in memory and in a file, and the file's checks.
#include <catch2/catch_test_macros.hpp>

#include "base/error.h"
#include "base/file_ops.h"
#include "store_fixture.h"
#include "support/failing_calls.h"
#include "support/temporary_directory.h"

using namespace hearth;
using namespace hearth::test;

namespace {

std::vector<Row> random_rows(uint64_t seed, int64_t count, int64_t longest) {
  Draws draws(seed);
  std::vector<Row> rows;
  for (int64_t i = 0; i < count; ++i) {
    rows.push_back(random_row(draws, draws.within(1, longest)));
  }
  return rows;
}

// Nothing here waits for the disk.
struct UnsyncedDirectory : TemporaryDirectory {
  FailingCalls calls;
  FileCallsOverride override_calls{calls};
};

void move_to(TokenStore& store, const std::string& path) {
  auto out = std::make_unique<OutputFile>(path);
  InputFile in(path);
  store.move_to_file(std::move(out), std::move(in));
}

// The rows as they should be given.
void check_rows(const TokenStore& store, const std::vector<Row>& rows, int64_t limit) {
  REQUIRE(store.rows() == static_cast<int64_t>(rows.size()));
  int64_t whole_trained = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    Row cut = rows[i];
    whole_trained += count_trained(cut.labels);
    if (limit > 0 && static_cast<int64_t>(cut.ids.size()) > limit) {
      cut.ids.resize(static_cast<size_t>(limit));
      cut.labels.resize(static_cast<size_t>(limit));
    }
    const auto row = static_cast<int64_t>(i);
    const Row read = row_of(store, row);
    REQUIRE(read.ids == cut.ids);
    REQUIRE(read.labels == cut.labels);
    REQUIRE(store.length(row) == static_cast<int64_t>(cut.ids.size()));
    REQUIRE(store.whole_length(row) == static_cast<int64_t>(rows[i].ids.size()));
    REQUIRE(store.trained(row) == count_trained(cut.labels));
  }
  CHECK(store.whole_trained_tokens() == whole_trained);
}

const Digest kStoreKey{1, 2};

// A finished file of the rows, 20 or so lines apart.
void write_store(const std::string& path, const std::vector<Row>& rows, const std::string& notes) {
  TokenStore store;
  int64_t line = 1;
  for (const Row& row : rows) store.add(row.ids, row.labels, line += 20);
  store.finish();
  move_to(store, path);
  store.write_footer(kStoreKey, notes);
}

}  // namespace

TEST_CASE("rows come back from memory and from a file, whole and cut", "[properties]") {
  const UnsyncedDirectory directory;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Draws draws(seed + 1000);
    const auto rows = random_rows(seed, draws.within(0, 150), draws.within(1, 60));
    const int64_t limit = draws.one_in(2) ? 0 : draws.within(1, 40);
    TokenStore store(limit);
    const std::string path = directory / std::to_string(seed);
    const int64_t moved = draws.below(static_cast<int64_t>(rows.size()) + 1);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (static_cast<int64_t>(i) == moved) move_to(store, path);
      store.add(rows[i].ids, rows[i].labels, static_cast<int64_t>(i) + 1);
    }
    store.finish();
    check_rows(store, rows, limit);
    if (!store.in_file()) move_to(store, path);
    store.write_footer(kStoreKey, "note " + std::to_string(seed));
    check_rows(store, rows, limit);

    const auto opened = TokenStore::open(path, kStoreKey, limit, 1000);
    check_rows(opened.store, rows, limit);
    CHECK(opened.notes == "note " + std::to_string(seed));
    CHECK(opened.store.bytes() <= 13 * opened.store.rows() + 64);
    CHECK(store.bytes() == opened.store.bytes());
    const auto& first = opened.store.first_long_row();
    REQUIRE(first.has_value() == store.first_long_row().has_value());
    if (first) CHECK(first->line == store.first_long_row()->line);
  }
}

TEST_CASE("a token costs four bytes on disk, whatever is trained") {
  const UnsyncedDirectory directory;
  Row row;
  for (int32_t i = 0; i < 10000; ++i) {
    row.ids.push_back(i);
    row.labels.push_back(i % 100 < 60 ? kIgnoredLabel : i);  // turns of a chat
  }
  write_store(directory / "a", {row, row, row}, "");
  CHECK(file_info(directory / "a").size < 3 * 10000 * 4 * 103 / 100);
}

TEST_CASE("a file that is damaged anywhere is refused") {
  const UnsyncedDirectory directory;
  const auto rows = random_rows(3, 6, 9);
  const std::string path = directory / "store";
  write_store(path, rows, "a note");
  const std::string whole = read_file(path);
  const auto opens = [&](const std::string& content) {
    write_file_atomically(path, content);
    try {
      check_rows(TokenStore::open(path, kStoreKey, 0, 1000).store, rows, 0);
      return true;
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::input);
      return false;
    }
  };
  REQUIRE(opens(whole));
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      REQUIRE_FALSE(opens(damaged));
    }
    REQUIRE_FALSE(opens(whole.substr(0, at)));  // a torn file
    REQUIRE_FALSE(opens(whole.substr(at + 1)));
  }
  REQUIRE_FALSE(opens(whole + '\0'));
  REQUIRE(opens(whole));
  CHECK_THROWS_AS(TokenStore::open(path, Digest{1, 3}, 0, 1000), Error);
  CHECK_THROWS_AS(TokenStore::open(path, kStoreKey, 0, 500), Error);  // ids of a larger vocabulary
}

TEST_CASE("words that are no row are told, also under a right checksum") {
  const auto trained = [](std::vector<uint32_t> words, uint32_t runs, uint32_t length) {
    return check_row_words(words, runs, length, 100, 50);
  };
  constexpr uint32_t kIgnored = 0, kAsId = 1, kOther = 2;
  const auto good = trained({3 << 2 | kAsId, 7, 8, 9}, 1, 3);
  REQUIRE(good);
  CHECK(good->whole == 2);
  CHECK(trained({2 << 2 | kIgnored, 1 << 2 | kOther, 4, 7, 8, 9}, 3, 3)->whole == 1);
  CHECK_FALSE(trained({3 << 2 | kAsId, 7, 8, 50}, 1, 3));              // no id
  CHECK_FALSE(trained({3 << 2 | kAsId, 7, 8, 0xffffffff}, 1, 3));      // no id
  CHECK_FALSE(trained({2 << 2 | kAsId, 7, 8, 9}, 1, 3));               // a run too short
  CHECK_FALSE(trained({4 << 2 | kAsId, 7, 8, 9}, 1, 3));               // too long
  CHECK_FALSE(trained({3 << 2 | 3, 7, 8, 9}, 1, 3));                   // of no kind
  CHECK_FALSE(trained({kAsId, 3 << 2 | kAsId, 7, 8, 9}, 2, 3));        // an empty run
  CHECK_FALSE(trained({3 << 2 | kOther, 7, 8, 9}, 1, 3));              // labels missing
  CHECK_FALSE(trained({1 << 2 | kOther, 99, 2 << 2, 7, 8, 9}, 3, 3));  // no label
  CHECK_FALSE(trained({}, 0, 0));
  CHECK(check_row_words(std::vector<uint32_t>{5 << 2 | 1, 1, 1, 1, 1, 1}, 1, 5, 3, 50)->cut == 2);
}
