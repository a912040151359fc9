#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <numeric>

#include "base/error.h"
#include "data/samples/epoch_plan.h"
#include "store_fixture.h"

using namespace hearth;
using namespace hearth::test;

TEST_CASE("a micro-batch is documents end to end with shifted labels") {
  TokenStore store;
  store.add(std::vector<int32_t>{5, 6, 7}, std::vector<int32_t>{-100, 6, 7});
  store.add(std::vector<int32_t>{9}, std::vector<int32_t>{9});
  store.add(std::vector<int32_t>{1, 2}, std::vector<int32_t>{1, -100});
  CHECK(RowSet(store).trained_tokens() ==
        2);  // 6 and 7; the first token of a row is never a target

  const RowSet rows(store);
  Sampler sampler(rows, {.seq_len = 4, .micro_batch = 2, .packing = true, .shuffle = false});
  const auto step = sampler.next_step();
  REQUIRE(step.size() == 1);
  const MicroBatch& batch = step[0];
  CHECK(batch.ids == std::vector<int32_t>{5, 6, 7, 9, 1, 2});
  CHECK(batch.labels == std::vector<int32_t>{6, 7, -100, -100, -100, -100});
  CHECK(batch.positions == std::vector<int32_t>{0, 1, 2, 0, 0, 1});
  CHECK(batch.offsets == std::vector<int32_t>{0, 3, 4, 6});
  CHECK(batch.tokens == 6);
  CHECK(batch.trained_tokens == 2);
  CHECK(batch.sequences == 2);
}

TEST_CASE("an epoch holds every row once, in sequences of at most seq_len") {
  for (int seed = 0; seed < 60; ++seed) {
    const Random random(seed, RandomSite::split);
    const int64_t seq_len = 1 + static_cast<int64_t>(random.below(0, 200));
    const auto store = store_of(random_lengths(seed, 1 + random.below(1, 300), seq_len));
    SamplerOptions options{.seq_len = seq_len,
                           .packing = seed % 4 != 0,
                           .shuffle = seed % 3 != 0,
                           .seed = static_cast<uint64_t>(seed)};
    for (int64_t epoch : {0, 1, 7}) {
      const EpochPlan plan = plan_epoch(RowSet(store), options, epoch);
      std::vector<int64_t> rows = order_of(plan);
      std::sort(rows.begin(), rows.end());
      std::vector<int64_t> all(store.rows());
      std::iota(all.begin(), all.end(), int64_t{0});
      REQUIRE(rows == all);
      for (int64_t i = 0; i < plan.sequences(); ++i) {
        const auto sequence = plan.sequence(i);
        REQUIRE(!sequence.empty());
        if (!options.packing) REQUIRE(sequence.size() == 1);
        int64_t tokens = 0;
        for (int64_t row : sequence) tokens += store.length(row);
        REQUIRE(tokens <= seq_len);
        if (!options.shuffle) REQUIRE(std::is_sorted(sequence.begin(), sequence.end()));
      }
    }
  }
}

TEST_CASE("packing fills sequences well") {
  const int64_t seq_len = 1024;
  const auto store = store_of(random_lengths(3, 20000, 600));
  const SamplerOptions options{.seq_len = seq_len};
  const double sequences = static_cast<double>(plan_epoch(RowSet(store), options, 0).sequences());
  const double needed = static_cast<double>(RowSet(store).tokens()) / seq_len;
  CHECK(sequences < 1.02 * needed);

  // Rows so short that many thousands share a sequence: a window is not cut at a number of rows.
  const auto tiny = store_of(random_lengths(4, 100000, 5));
  const int64_t packed = plan_epoch(RowSet(tiny), {.seq_len = 32768}, 0).sequences();
  CHECK(packed <= RowSet(tiny).tokens() / 32768 + 2);
}

TEST_CASE("best fit takes the fullest sequence with room") {
  // Lengths 6, 5, 4, 3, 2 into 10: [6 4] and [5 3 2]. First fit would give the same; worst fit not.
  const auto store = store_of({2, 6, 3, 5, 4});
  const EpochPlan plan = plan_epoch(RowSet(store), {.seq_len = 10, .shuffle = false}, 0);
  REQUIRE(plan.sequences() == 2);
  CHECK(order_of(plan) == std::vector<int64_t>{0, 2, 3, 1, 4});
  CHECK(plan.sequence(0).size() == 3);
}

TEST_CASE("shuffling depends on seed and epoch, and on nothing else") {
  const auto store = store_of(random_lengths(1, 500, 40));
  SamplerOptions options{.seq_len = 64, .seed = 7};
  const auto rows = [&](int64_t epoch) {
    return order_of(plan_epoch(RowSet(store), options, epoch));
  };
  CHECK(rows(0) == rows(0));
  CHECK(rows(0) != rows(1));
  const auto first = rows(0);
  options.seed = 8;
  CHECK(rows(0) != first);
  options.shuffle = false;
  options.packing = false;
  std::vector<int64_t> all(store.rows());
  std::iota(all.begin(), all.end(), int64_t{0});
  CHECK(rows(0) == all);
}

TEST_CASE("every order of few rows comes up about as often") {
  const auto store = store_of({1, 1, 1});
  std::map<std::vector<int64_t>, int> seen;
  for (int64_t epoch = 0; epoch < 6000; ++epoch) {
    ++seen[order_of(plan_epoch(RowSet(store), {.seq_len = 4, .packing = false}, epoch))];
  }
  REQUIRE(seen.size() == 6);
  for (const auto& [order, times] : seen) CHECK(std::abs(times - 1000) < 150);
}

TEST_CASE("a cursor is all the state there is") {
  const auto store = store_of(random_lengths(2, 37, 50));
  const RowSet rows(store);
  for (bool packing : {false, true}) {
    const SamplerOptions options{
        .seq_len = 64, .micro_batch = 3, .grad_accum = 2, .packing = packing, .seed = 11};
    Sampler straight(rows, options);
    for (int k = 0; k < 40; ++k) {
      Sampler resumed(rows, options);
      resumed.seek(straight.cursor());
      const auto expected = straight.next_step();
      const auto step = resumed.next_step();
      REQUIRE(step.size() == 2);
      for (size_t i = 0; i < step.size(); ++i) REQUIRE(same(step[i], expected[i]));
      REQUIRE(resumed.cursor() == straight.cursor());
    }
    CHECK(straight.cursor().epoch > 1);
  }
  Sampler sampler(rows, {.seq_len = 64, .packing = false});
  CHECK_THROWS_AS(sampler.seek({0, 37}), Error);
  CHECK_THROWS_AS(sampler.seek({-1, 0}), Error);
}

TEST_CASE("epochs follow one another without a gap") {
  const auto store = store_of(random_lengths(5, 7, 9));
  const RowSet rows(store);
  Sampler sampler(rows, {.seq_len = 9, .micro_batch = 3, .grad_accum = 2, .packing = false});
  CHECK(sampler.sequences_in_epoch(0) == 7);
  CHECK(sampler.steps_for_epochs(1) == 2);
  CHECK(sampler.steps_for_epochs(6) == 7);
  CHECK(sampler.steps_for_epochs(0.5) == 1);
  CHECK(sampler.steps_for_epochs(1.8) == 3);  // 7 + 6 sequences
  std::map<int32_t, int> seen;
  for (int step = 0; step < 7; ++step) {
    for (const auto& batch : sampler.next_step()) {
      CHECK(batch.sequences == 3);
      for (int32_t id : batch.ids) ++seen[id];
    }
  }
  CHECK(sampler.cursor() == SamplerCursor{6, 0});
  CHECK(static_cast<int64_t>(seen.size()) == RowSet(store).tokens());
  for (const auto& [id, times] : seen) CHECK(times == 6);
}

TEST_CASE("steps of epochs count the packed sequences of each epoch") {
  const auto store = store_of(random_lengths(6, 400, 60));
  const RowSet rows(store);
  Sampler sampler(rows, {.seq_len = 64, .micro_batch = 2, .grad_accum = 3});
  int64_t sequences = 0;
  for (int64_t epoch = 0; epoch < 3; ++epoch) sequences += sampler.sequences_in_epoch(epoch);
  CHECK(sampler.steps_for_epochs(3) == (sequences + 5) / 6);
}

TEST_CASE("bounds hold for every micro-batch") {
  for (int seed = 0; seed < 48; ++seed) {
    const int64_t count = 1 + seed % 11;
    const auto store = store_of(random_lengths(seed, count, 30));
    const RowSet rows(store);
    const SamplerOptions options{.seq_len = 40,
                                 .micro_batch = 1 + seed % 5,
                                 .grad_accum = 2,
                                 .packing = seed % 2 == 0,
                                 .shuffle = seed % 3 != 0,
                                 .seed = static_cast<uint64_t>(seed)};
    Sampler sampler(rows, options);
    const int64_t most_tokens = sampler.max_tokens_per_micro_batch();
    const int64_t most_documents = sampler.max_documents_per_micro_batch();
    int64_t seen = 0;
    for (int step = 0; step < 60; ++step) {
      for (const auto& batch : sampler.next_step()) {
        REQUIRE(batch.tokens == static_cast<int64_t>(batch.ids.size()));
        REQUIRE(batch.tokens <= most_tokens);
        REQUIRE(static_cast<int64_t>(batch.offsets.size()) - 1 <= most_documents);
        seen = std::max(seen, batch.tokens);
      }
    }
    // In file order the bound is exact once every alignment of batch and epoch came up.
    if (!options.packing && !options.shuffle && std::gcd(count, options.micro_batch) == 1) {
      CHECK(seen == most_tokens);
    }
  }
}

TEST_CASE("evaluation passes once, in file order") {
  const auto store = store_of(random_lengths(8, 23, 30));
  const RowSet rows(store);
  for (bool packing : {false, true}) {
    EvalBatches batches(
        rows, {.seq_len = 32, .micro_batch = 4, .packing = packing, .shuffle = true, .seed = 9});
    for (int pass = 0; pass < 2; ++pass) {
      int64_t tokens = 0, trained = 0, count = 0, most_tokens = 0, most_documents = 0;
      std::vector<int32_t> ids;
      while (const auto batch = batches.next()) {
        ++count;
        tokens += batch->tokens;
        trained += batch->trained_tokens;
        most_tokens = std::max(most_tokens, batch->tokens);
        most_documents = std::max<int64_t>(most_documents, batch->offsets.size() - 1);
        ids.insert(ids.end(), batch->ids.begin(), batch->ids.end());
      }
      CHECK(tokens == RowSet(store).tokens());
      CHECK(trained == RowSet(store).trained_tokens());
      CHECK(count == batches.micro_batches());
      CHECK(most_tokens == batches.max_tokens_per_micro_batch());
      CHECK(most_documents == batches.max_documents_per_micro_batch());
      if (!packing) CHECK(std::is_sorted(ids.begin(), ids.end()));
      batches.restart();
    }
  }
}

TEST_CASE("a micro-batch of more than 2^31 tokens is refused") {
  const auto store = store_of({1});
  CHECK_THROWS_AS(Sampler(RowSet(store), {.seq_len = 1 << 20, .micro_batch = 1 << 12}), Error);
}
