// The rows of a run: threads, errors, lengths, weights and the split for evaluation.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "base/error.h"
#include "base/sanitized.h"
#include "run_rows_fixture.h"
#include "support/allowed_cpus.h"
#include "support/has.h"
#include "support/raises.h"

using namespace hearth;
using namespace hearth::test;

namespace {

std::string rows_refusal(RunRowsFixture& fixture, const std::vector<std::string>& files,
                         ExitCode code) {
  try {
    fixture.read(files);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "accepted";
}

// Rows of one id, from `first` on.
std::string numbers(int first, int count) {
  std::string text;
  for (int i = first; i < first + count; ++i) {
    text += "{\"input_ids\": [1, " + std::to_string(i) + "]}\n";
  }
  return text;
}

std::vector<int32_t> second_ids(const RowSet& set) {
  std::vector<int32_t> ids;
  const auto all = contents(set);
  for (size_t i = 0; i < all.size(); i += 2) ids.push_back(all[i][1]);
  return ids;
}

}  // namespace

TEST_CASE("rows, totals and errors do not depend on the number of threads") {
  RunRowsFixture fixture;
  fixture.request.cache.most_bytes = 0;
  const auto good = fixture.chats("good.jsonl", kSanitized ? 9000 : 20000);  // several batches
  std::string text = read_file(good);
  const size_t second = text.find('\n', text.size() / 2) + 1;
  text.insert(second, "{\"text\": 5}\n");
  text.insert(text.find('\n', second + 40000) + 1, "{\"text\": 6}\n");
  const auto bad = fixture.file("bad.jsonl", text);
  std::vector<std::vector<int32_t>> rows, partly;
  std::string first_error;
  for (const int threads : {1, 2, 5}) {
    fixture.request.threads = threads;
    fixture.request.rows.skip_bad_rows = 0;
    const auto all = contents(*fixture.read({good}));
    const std::string error = rows_refusal(fixture, {bad}, ExitCode::input);
    CHECK(has(error, "bad.jsonl:"));
    CHECK(has(error, "'5'"));
    fixture.request.rows.skip_bad_rows = 1;
    CHECK(has(rows_refusal(fixture, {bad}, ExitCode::input), "'6'"));
    fixture.request.rows.skip_bad_rows = 2;
    const auto read = fixture.read({bad});
    CHECK(read->summary().totals.bad == 2);
    CHECK(contents(*read) == all);
    if (threads == 1) {
      rows = all;
      first_error = error;
    }
    CHECK(all == rows);
    CHECK(error == first_error);
  }
}

TEST_CASE("the thread that read rows sees all of its cores again") {
  RunRowsFixture fixture;
  const std::set<int> before = allowed_cpus();
  fixture.request.files = {{fixture.chats("rows.jsonl", 100), 1}};
  const RunRows rows(fixture.request, Pool(1, {*before.begin()}));
  CHECK(allowed_cpus() == before);
}

TEST_CASE("rows that outgrow memory are read from a file") {
  RunRowsFixture fixture;
  const auto path = fixture.chats("rows.jsonl", 30000);
  for (const uint64_t kept : {uint64_t{0}, uint64_t{1} << 30}) {
    fixture.request.cache.most_bytes = kept;
    fixture.request.cache.most_in_memory = int64_t{64} << 20;
    const auto expected = contents(*fixture.read({path}));
    fixture.request.cache.most_in_memory = 1000;
    const auto read = fixture.read({path});
    CHECK(contents(*read) == expected);
    CHECK(read->bytes() < 17 * 30000);
    CHECK(contents(*fixture.read({path})) == expected);
  }
  for (const std::string& name : list_directory(fixture.cache())) {
    CHECK((name.starts_with(".lock-") || name.ends_with(".rows")));
  }
}

TEST_CASE("bad rows are counted over all files, from the cache as well") {
  RunRowsFixture fixture;
  const auto a = fixture.file("a.jsonl", numbers(2, 3) + "{\"input_ids\": [1, \"x\"]}\n");
  const auto b = fixture.file("b.jsonl", "[1]\n" + numbers(5, 3));
  fixture.request.rows.skip_bad_rows = 2;
  CHECK(fixture.read({a, b})->summary().totals.bad == 2);
  CHECK(fixture.read({a, b})->summary().totals.bad == 2);
  fixture.request.rows.skip_bad_rows = 1;
  const std::string warm = rows_refusal(fixture, {a, b}, ExitCode::input);
  CHECK(has(warm, "b.jsonl:1: "));
  fixture.request.cache.most_bytes = 0;
  CHECK(rows_refusal(fixture, {a, b}, ExitCode::input) == warm);
  fixture.request.rows.skip_bad_rows = 0;
  CHECK(has(rows_refusal(fixture, {a, b}, ExitCode::input), "a.jsonl:4: input_ids[1]"));
}

TEST_CASE("long rows are cut, left out or refused, and their tokens counted") {
  RunRowsFixture fixture;
  const auto path =
      fixture.file("rows.jsonl",
                   "{\"input_ids\": [1, 2, 3]}\n\n"
                   "{\"input_ids\": [1, 2, 3, 4, 5]}\n"
                   "{\"input_ids\": [1, 2, 3, 4], \"labels\": [-100, -100, -100, 4]}\n");
  for (int start = 0; start < 2; ++start) {  // cold and from the cache
    fixture.request.rows.seq_len = 3;
    fixture.request.rows.overflow = Overflow::truncate;
    const auto cut = fixture.read({path});
    const RowTotals& totals = cut->summary().totals;
    CHECK(totals.rows == 3);
    CHECK(totals.tokens == 9);
    CHECK(totals.trained_tokens == 4);
    CHECK(totals.truncated == 2);
    CHECK(totals.truncated_tokens == 3);
    CHECK(totals.untrained == 1);
    CHECK(cut->summary().truncated_trained_tokens == 3);
    CHECK(cut->summary().p50 == 4);
    CHECK(cut->summary().p90 == 5);
    CHECK(cut->summary().longest == 5);
    CHECK(cut->training().longest() == 3);
    CHECK(contents(*cut)[2] == std::vector<int32_t>{1, 2, 3});

    fixture.request.rows.overflow = Overflow::drop;
    const auto dropped = fixture.read({path});
    CHECK(dropped->summary().totals.rows == 1);
    CHECK(dropped->summary().totals.dropped == 2);
    CHECK(dropped->summary().totals.truncated == 0);
    CHECK(contents(*dropped).size() == 2);

    fixture.request.rows.overflow = Overflow::error;
    CHECK(has(rows_refusal(fixture, {path}, ExitCode::input), "rows.jsonl:3: 5 ids, more than"));
    fixture.request.rows.seq_len = 5;
    CHECK(fixture.read({path})->summary().totals.rows == 3);
    fixture.request.rows.seq_len = 2;
    fixture.request.rows.overflow = Overflow::drop;
    CHECK(has(rows_refusal(fixture, {path}, ExitCode::input), "all 3 are longer"));
  }
}

TEST_CASE("data without rows or without trained tokens is refused") {
  RunRowsFixture fixture;
  const auto message = [&](const std::string& content) {
    return rows_refusal(fixture, {fixture.file("rows.jsonl", content)}, ExitCode::input);
  };
  CHECK(has(message(""), "no rows"));
  CHECK(has(message("\n \r\n\t\n"), "no rows"));
  CHECK(has(message("{\"input_ids\": [1, 2], \"labels\": [1, -100]}"), "no trained token"));
  CHECK(has(message("{\"input_ids\": [1]}"), "no trained token"));
  // Cut before the answer: the line says what to raise.
  const std::string late = "{\"input_ids\": [1, 2, 3], \"labels\": [-100, -100, 3]}\n";
  fixture.request.rows.seq_len = 2;
  CHECK(has(message("{\"input_ids\": [1]}\n" + late),
            "no trained token in any row; 1 of 2 rows are cut before what is trained: raise "));
  CHECK_FALSE(has(message("{\"input_ids\": [1]}"), "cut"));
  fixture.request.rows.seq_len = 3;
  CHECK(fixture.read({fixture.file("rows.jsonl", late)})->summary().totals.trained_tokens == 1);
}

TEST_CASE("names of data files, with and without a weight") {
  RunRowsFixture fixture;
  const auto plain = fixture.file("a.jsonl", numbers(2, 4));
  const auto colon = fixture.file("b:0.5", numbers(10, 4));
  const auto parse = [&](const std::string& name) {
    return parse_data_files({name}, "--data", true).at(0);
  };
  CHECK(parse(plain).passes == 1);
  CHECK(parse(plain + ":0.25").passes == 0.25);
  CHECK(parse(plain + ":0.25").path == plain);
  CHECK(parse(plain + ":1e-3").passes == 1e-3);
  CHECK(parse(colon).passes == 1);
  CHECK(parse(colon).path == colon);
  CHECK(parse(colon + ":2").passes == 2);
  CHECK(parse(colon + ":2").path == colon);
  CHECK(parse("-").path == "-");
  CHECK(parse("-:3").passes == 3);
  CHECK(parse("C:/data/rows").path == "C:/data/rows");
  for (const char* weight : {":0", ":-1", ":nan", ":inf", ":1001"}) {
    CAPTURE(weight);
    CHECK(raised_by([&] { parse(plain + weight); }).code == ExitCode::usage);
  }
  CHECK(raised_by([&] { parse_data_files({plain + ":2"}, "--eval-data", false); }).code ==
        ExitCode::usage);
  CHECK(raised_by([&] { parse_data_files({"-", "-:2"}, "--data", true); }).code == ExitCode::usage);
  CHECK(raised_by([&] {
          fixture.read({plain, fixture.directory / "missing:2"});
        }).code == ExitCode::input);

  const auto rows = fixture.read({plain + ":2", colon + ":0.5"});
  CHECK(rows->training().rows() == 8);
  CHECK(rows->training().rows_in_epoch() == 10);
  CHECK(rows->summary().totals.rows == 8);
  CHECK(rows->digests()[0].first == plain);
}

TEST_CASE("rows kept for evaluation are never trained on", "[properties]") {
  RunRowsFixture fixture;
  const auto a = fixture.file("a.jsonl", numbers(2, 60));
  const auto b = fixture.file("b.jsonl", numbers(62, 40));
  std::vector<int32_t> last;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Draws draws(seed);
    fixture.request.seed = seed;
    const bool share = draws.one_in(2);
    const auto asked = draws.within(1, 99);
    fixture.request.val_size =
        share ? static_cast<double>(asked) / 100 : static_cast<double>(asked);
    const auto rows = fixture.read({a + (draws.one_in(2) ? ":2.5" : ""), b});
    std::vector<int32_t> train = second_ids(rows->training()),
                         held = second_ids(rows->validation());
    REQUIRE(static_cast<int64_t>(held.size()) == asked);
    REQUIRE(train.size() + held.size() == 100);
    REQUIRE(std::is_sorted(held.begin(), held.end()));
    const auto again = fixture.read({a, b});
    REQUIRE(second_ids(again->validation()) == held);
    REQUIRE(again->split() == rows->split());
    if (asked > 3 && asked < 97) REQUIRE(held != last);
    last = held;
    for (const uint32_t row : rows->training().epoch_rows(seed, 0)) {
      REQUIRE(row < train.size());
    }
    train.insert(train.end(), held.begin(), held.end());
    std::sort(train.begin(), train.end());
    for (size_t i = 0; i < train.size(); ++i) REQUIRE(train[i] == static_cast<int32_t>(i) + 2);
  }
  fixture.request.val_size = 0.001;
  CHECK(fixture.read({a, b})->validation().rows() == 1);
  for (const double size : {100.0, 5000.0, 0.995}) {
    fixture.request.val_size = size;
    CHECK(has(rows_refusal(fixture, {a, b}, ExitCode::usage), "the validation size"));
  }
  // Rows that are too long are left out before the split.
  fixture.request.val_size = 2;
  fixture.request.rows.seq_len = 2;
  fixture.request.rows.overflow = Overflow::drop;
  const auto c = fixture.file("c.jsonl", "{\"input_ids\": [1, 2, 3]}\n" + numbers(4, 3));
  const auto rows = fixture.read({c});
  CHECK(rows->validation().rows() == 2);
  CHECK(rows->training().rows() == 1);
}

TEST_CASE("a signal ends the reading of data") {
  RunRowsFixture fixture;
  const auto path = fixture.chats("rows.jsonl", 2000);
  int asked = 0;
  fixture.request.hooks.stop = [&] { return ++asked > 3; };
  fixture.request.cache.most_in_memory = 0;
  CHECK(raised_by([&] { fixture.read({path}); }).code == ExitCode::stopped);
  for (const std::string& name : list_directory(fixture.cache())) CHECK(name.starts_with(".lock-"));
  fixture.request.hooks.stop = {};
  CHECK(fixture.read({path})->summary().totals.rows == 2000);
}
