// Properties of an epoch: rows with weights, packing and the order of training, over random cases.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>

#include "base/error.h"
#include "data/samples/epoch_plan.h"
#include "store_fixture.h"

using namespace hearth;
using namespace hearth::test;

namespace {

// One or several stores with passes; ids of all rows differ.
struct Case {
  std::vector<TokenStore> stores;
  std::vector<double> passes;
  SamplerOptions options;
  RowSet rows;

  Case(uint64_t seed, bool with_weights) {
    Draws draws(seed);
    options.seq_len = draws.within(1, draws.one_in(4) ? 8 : 300);
    options.micro_batch = draws.within(1, 4);
    options.grad_accum = draws.within(1, 3);
    options.packing = !draws.one_in(4);
    options.shuffle = !draws.one_in(4);
    options.seed = static_cast<uint64_t>(draws.below(5));
    const int64_t count = with_weights ? draws.within(1, 3) : 1;
    int32_t next = 0;
    stores.reserve(static_cast<size_t>(count));
    for (int64_t s = 0; s < count; ++s) {
      TokenStore& store = stores.emplace_back();
      const int64_t most = draws.one_in(3) ? options.seq_len : 1 + options.seq_len / 3;
      for (int64_t row = draws.within(1, 40); row > 0; --row) {
        std::vector<int32_t> ids(static_cast<size_t>(draws.within(1, most)));
        for (int32_t& id : ids) id = next++;
        store.add(ids, ids);
      }
      constexpr double kPasses[] = {1, 2, 0.5, 0.1, 1.25, 3.9};
      passes.push_back(with_weights ? kPasses[draws.below(6)] : 1);
      rows.add(store, std::nullopt, passes.back());
    }
  }
};

}  // namespace

TEST_CASE("an epoch loses, repeats and splits no row", "[properties]") {
  for (uint64_t seed = 0; seed < 10000; ++seed) {
    const Case c(seed, seed % 2 == 1);
    const auto epoch = static_cast<int64_t>(seed % 5);
    const EpochPlan plan = plan_epoch(c.rows, c.options, epoch);
    std::vector<int64_t> rows = order_of(plan);
    REQUIRE(static_cast<int64_t>(rows.size()) == c.rows.rows_in_epoch());
    int64_t begin = 0;
    for (int64_t i = 0; i < plan.sequences(); ++i) {
      const auto sequence = plan.sequence(i);
      REQUIRE(!sequence.empty());
      REQUIRE((c.options.packing || sequence.size() == 1));
      int64_t tokens = 0;
      for (const uint32_t row : sequence) tokens += c.rows.length(row);
      REQUIRE(tokens <= c.options.seq_len);
      begin += static_cast<int64_t>(sequence.size());
    }
    REQUIRE(begin == static_cast<int64_t>(rows.size()));
    // Every row as often as the passes say, and the rest of a pass within one.
    std::map<int64_t, int64_t> times;
    for (const int64_t row : rows) ++times[row];
    int64_t first = 0;
    for (size_t s = 0; s < c.stores.size(); ++s) {
      const auto whole = static_cast<int64_t>(c.passes[s]);
      const auto n = c.stores[s].rows();
      int64_t more = 0;
      for (int64_t row = first; row < first + n; ++row) {
        REQUIRE((times[row] == whole || times[row] == whole + 1));
        more += times[row] - whole;
      }
      const double asked = (c.passes[s] - static_cast<double>(whole)) * static_cast<double>(n);
      REQUIRE(std::abs(static_cast<double>(more) - asked) <= (whole == 0 ? 1 : 0.5));
      if (whole == 0) REQUIRE(more > 0);
      first += n;
    }
    REQUIRE(first == static_cast<int64_t>(c.rows.rows()));
  }
}

TEST_CASE("every cursor resumes to the same batches", "[properties]") {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    const Case c(seed, seed % 3 != 0);
    Sampler straight(c.rows, c.options);
    const int64_t most_tokens = straight.max_tokens_per_micro_batch();
    const int64_t most_documents = straight.max_documents_per_micro_batch();
    std::optional<Sampler> behind;  // goes on from a cursor in the middle
    for (int step = 0; step < 8; ++step) {
      Sampler resumed(c.rows, c.options);
      resumed.seek(straight.cursor());
      const auto expected = straight.next_step();
      const auto again = resumed.next_step();
      REQUIRE(again.size() == expected.size());
      for (size_t i = 0; i < again.size(); ++i) {
        REQUIRE(same(again[i], expected[i]));
        REQUIRE(expected[i].tokens <= most_tokens);
        REQUIRE(static_cast<int64_t>(expected[i].offsets.size()) - 1 <= most_documents);
      }
      if (behind) {
        const auto followed = behind->next_step();
        for (size_t i = 0; i < followed.size(); ++i) REQUIRE(same(followed[i], expected[i]));
      }
      if (step == 3) {
        behind.emplace(c.rows, c.options);
        behind->seek(straight.cursor());
      }
      REQUIRE(resumed.cursor() == straight.cursor());
    }
  }
}

TEST_CASE("a fraction of a pass takes other rows in each epoch, and all of them in the long run") {
  const auto store = store_of(random_lengths(1, 100, 20));
  RowSet rows;
  rows.add(store, std::nullopt, 0.25);
  CHECK(rows.rows_in_epoch() == 25);
  CHECK(!rows.epochs_alike());
  CHECK(rows.epoch_rows(3, 0) == rows.epoch_rows(3, 0));
  CHECK(rows.epoch_rows(3, 0) != rows.epoch_rows(3, 1));
  CHECK(rows.epoch_rows(3, 0) != rows.epoch_rows(4, 0));
  std::map<uint32_t, int> times;
  for (int64_t epoch = 0; epoch < 400; ++epoch) {
    const auto chosen = rows.epoch_rows(3, epoch);
    REQUIRE(std::is_sorted(chosen.begin(), chosen.end()));
    for (const uint32_t row : chosen) ++times[row];
  }
  REQUIRE(times.size() == 100);
  for (const auto& [row, n] : times) CHECK(std::abs(n - 100) < 45);
}

TEST_CASE("two stores with the same fraction do not choose alike") {
  const auto store = store_of(random_lengths(1, 64, 20));
  RowSet rows;
  rows.add(store, std::nullopt, 0.5);
  rows.add(store, std::nullopt, 0.5);
  const auto chosen = rows.epoch_rows(0, 0);
  std::vector<uint32_t> first, second;
  for (const uint32_t row : chosen) (row < 64 ? first : second).push_back(row % 64);
  CHECK(first.size() == 32);
  CHECK(first != second);
}

TEST_CASE("a choice of rows is a choice without favour") {
  std::map<std::vector<uint32_t>, int> seen;
  for (uint32_t i = 0; i < 6000; ++i) {
    ++seen[choose_rows(4, 2, Random(7, RandomSite::split, i))];
  }
  REQUIRE(seen.size() == 6);
  for (const auto& [rows, times] : seen) CHECK(std::abs(times - 1000) < 150);
  CHECK(choose_rows(5, 5, Random(1, RandomSite::split)).size() == 5);
  CHECK(choose_rows(5, 0, Random(1, RandomSite::split)).empty());
}

TEST_CASE("the order of an epoch is that of earlier versions") {
  // Saved states name a place in it.
  const auto store = store_of(random_lengths(1, 500, 40));
  Hasher hasher;
  for (const bool packing : {false, true}) {
    for (const int64_t epoch : {0, 3}) {
      const SamplerOptions options{.seq_len = 64, .packing = packing, .seed = 7};
      for (const int64_t row : order_of(plan_epoch(RowSet(store), options, epoch))) {
        hasher.update_u64(static_cast<uint64_t>(row));
      }
    }
  }
  CHECK(hasher.digest().hex() == "06c34bfdef7332bdd2680ecc5e9fbff8");
}

TEST_CASE("an epoch of several windows loses, repeats and splits no row") {
  const auto store = store_of(random_lengths(2, 13'000, 16));
  const RowSet rows(store);
  const EpochPlan plan = plan_epoch(rows, {.seq_len = 64, .packing = true, .seed = 1}, 0);
  std::vector<bool> seen(13'000);
  for (int64_t i = 0; i < plan.sequences(); ++i) {
    int64_t tokens = 0;
    for (const uint32_t row : plan.sequence(i)) {
      REQUIRE(!seen[row]);
      seen[row] = true;
      tokens += rows.length(row);
    }
    REQUIRE(tokens <= 64);
  }
  CHECK(std::all_of(seen.begin(), seen.end(), [](bool is) { return is; }));
}

TEST_CASE("ten million rows are ordered and packed in seconds", "[.long]") {
  TokenStore store;
  Draws draws(1);
  for (int64_t row = 0; row < 10'000'000; ++row) {
    const std::vector<int32_t> ids(static_cast<size_t>(1 + draws.below(8)), 1);
    store.add(ids, ids);
  }
  const RowSet rows(store);
  const EpochPlan plan = plan_epoch(rows, {.seq_len = 64}, 0);
  CHECK(plan.bytes() <= 12 * rows.rows());
  CHECK(plan.sequences() < store.rows() * 45 / 640 * 102 / 100 + 64);
}
