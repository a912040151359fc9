// Several ranks, as threads: the bits are those of one rank with as many logical shards.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <thread>

#include "base/file_ops.h"
#include "base/json.h"
#include "base/sanitized.h"
#include "base/system.h"
#include "budget/plan_report.h"
#include "runtime/shared_parameters.h"
#include "topology/topology.h"
#include "train/faulty_rank.h"
#include "train/planned_run.h"
#include "train/rank_options.h"
#include "train/ranks_fixture.h"

namespace hearth::test {

TEST_CASE("ranks: equal logical shards give equal bits on any number of ranks") {
  RanksFixture f;
  for (const TrainedWith& with : {kFull, kLora, TrainedWith{"tied", {}, ComputeChoice::bf16}}) {
    const std::vector<int64_t> ranks =
        kSanitized ? std::vector<int64_t>{4} : std::vector<int64_t>{2, 4, 8};
    const RunBits expected = f.bits_of(with, 8, 1);
    REQUIRE(expected.steps.size() == 3);
    for (const int64_t count : ranks) {
      INFO(text_of(with, {}) << " on " << count << " ranks");
      CHECK(f.bits_of(with, 8, count) == expected);
    }
  }
}

TEST_CASE("ranks: logical shards that are no power of two") {
  RanksFixture f;
  for (const TrainedWith& with : {kFull, kLora}) {
    const RunBits expected = f.bits_of(with, 15, 1);
    REQUIRE(expected.steps.size() == 3);
    const std::vector<int64_t> ranks =
        kSanitized ? std::vector<int64_t>{5} : std::vector<int64_t>{3, 5, 15};
    for (const int64_t count : ranks) {
      INFO(text_of(with, {}) << " on " << count << " ranks");
      CHECK(f.bits_of(with, 15, count) == expected);
    }
  }
}

// Else the tests above would prove nothing.
TEST_CASE("ranks: the bits depend on the number of logical shards\\, not on groups or devices") {
  RanksFixture f;
  TrainConfig config = f.config_of(kFull, "four", 4, 1);
  config.grad_accum = 8;
  const RunBits four = f.bits_of(config);
  REQUIRE(four.steps.size() == 3);
  config.out = f.dir / "one-by-one";
  config.group = 1;
  CHECK(f.bits_of(config) == four);
  config.out = f.dir / "recomputed";
  config.group = {};
  config.recompute = Recompute::blocks;
  CHECK(f.bits_of(config) == four);
  config.out = f.dir / "device";
  config.devices = "virtual";
  CHECK(f.bits_of(config) == four);
  config.devices = "virtual,host";
  config.out = f.dir / "device-and-host";
  CHECK(f.bits_of(config) == four);
  config.devices = "auto";
  config.out = f.dir / "one";
  config.logical_shards = 1;
  const RunBits one = f.bits_of(config);
  CHECK(one.root != four.root);
  CHECK(std::get<0>(one.steps[0]) == std::get<0>(four.steps[0]));  // the sum of losses is no tree
}

TEST_CASE("ranks: a run goes on with another number of ranks") {
  RanksFixture f;
  for (const TrainedWith& with : {kFull, TrainedWith{"tied", {}, ComputeChoice::bf16}}) {
    f.check_path(with, {{4}, {1}, {2}, {4}});
  }
}

TEST_CASE("ranks: a plan says which shards each rank computes") {
  RanksFixture f;
  TrainConfig config = f.config_of(kFull, "run", 6, 2);
  const auto planned = [&] {
    RecordingReporter reporter;
    const PlannedRun run(config, open_model(config), reporter);
    return plan_json(run.model, run.times, run.model.plan.places);
  };
  const Json threads = planned();
  REQUIRE(threads.find("ranks")->as_array().size() == 2);
  const Json& second = threads.find("ranks")->as_array()[1];
  CHECK(second.find("rank")->as_int() == 1);
  CHECK(second.find("host")->as_string() == own_host_name());
  CHECK(second.find("shards")->dump() == "[3, 5]");
  const JsonArray& layers = second.find("experts")->as_array();
  const auto opened = open_model(config);
  const ModelSpec& spec = opened->spec;
  CHECK(std::ssize(layers) == spec.moe_layers());
  CHECK(std::ssize(layers[0].as_array()) == spec.experts);
  // Processes are on hosts of their own, and none has the memory of the others.
  std::swap(config.thread_ranks, config.process_ranks);
  config.rank_hosts = {"a", "b"};
  const Json processes = planned();
  CHECK(processes.find("ranks")->as_array()[1].find("host")->as_string() == "b");
  REQUIRE(processes.find("memory")->as_array().size() == 2);
  // A process also has the program and the data.
  CHECK(other_hosts(processes, "peak_bytes") > other_hosts(threads, "peak_bytes"));
}

TEST_CASE("ranks: moments are at their owners alone") {
  RanksFixture f;
  const TrainConfig config = f.config_of(kFull, "run", 4, 4);
  REQUIRE(f.run(config) == ExitCode::done);
  const Json plan = parse_json(read_file(f.dir / "run/plan.json"), "plan");
  const double planned = other_hosts(plan, "peak_bytes");
  const double measured = other_hosts(plan, "measured_peak_bytes");
  CHECK(measured > 0);
  // Scratch is for the largest task. Sanitizers have memory of their own.
  if (!kSanitized) CHECK(measured < planned * 1.01);

  RecordingReporter reporter;
  PlannedRun run(config, open_model(config), reporter);
  ParameterTable& table = run.model.table;
  const auto moment_bytes = [&](int32_t rank) {
    own_blocks(table, {4, 4, rank});
    size_t bytes = 0;
    for (const ParameterArena& arena : parameter_arenas(table, run.model.plan.policy)) {
      if (arena.role == CopyRole::moment1) bytes += arena.bytes;
    }
    return bytes;
  };
  size_t trained = 0, parts = 0;
  for (const Tensor& t : table.tensors()) {
    if (t.trainable) trained += static_cast<size_t>(t.size()) * sizeof(float);
  }
  for (const int32_t rank : {0, 1, 2, 3}) {
    CHECK(moment_bytes(rank) < trained / 2);  // of four balanced shares
    parts += moment_bytes(rank);
  }
  CHECK(parts >= trained);
  CHECK(parts < trained * 11 / 10);  // with what aligns tensors
}

TEST_CASE("ranks: metrics say what each rank did\\, and what went over the links") {
  RanksFixture f;
  TrainConfig config = f.config_of(kFull, "run", 4, 2);
  REQUIRE(f.run(config) == ExitCode::done);
  const std::vector<std::string> lines = f.lines("run/metrics.jsonl");
  REQUIRE(lines.size() == 3);
  for (const std::string& line : lines) {
    const Json json = parse_json(line, "a line");
    const JsonArray& ranks = json.find("ranks")->as_array();
    REQUIRE(ranks.size() == 2);
    int64_t tokens = 0;
    for (size_t rank = 0; rank < 2; ++rank) {
      CHECK(ranks[rank].find("rank")->as_int() == static_cast<int64_t>(rank));
      CHECK(!ranks[rank].find("host")->as_string().empty());
      const double time = ranks[rank].find("time_s")->as_double();
      CHECK(time > 0);
      CHECK(ranks[rank].find("wait_s")->as_double() <= time);
      tokens += ranks[rank].find("tokens")->as_int();
    }
    CHECK(tokens == json.find("tokens")->as_int());
  }
  // Each gradient goes to its owner once, and the updated weight back: 4 bytes each.
  RecordingReporter reporter;
  const PlannedRun run(config, open_model(config), reporter);
  int64_t parameters = 0;
  for (const Tensor& t : run.model.table.tensors()) parameters += t.trainable ? t.size() : 0;
  const Json bytes = *parse_json(lines[1], "a line").find("bytes");
  const double sum =
      bytes.find("0/host->1/host")->as_double() + bytes.find("1/host->0/host")->as_double();
  const auto least = static_cast<double>(8 * parameters);
  CHECK(sum >= least);
  CHECK(sum <= 1.03 * least + 2 * 4096);
}

TEST_CASE("ranks: evaluation\\, digests\\, saves and a chosen best state are rank 0's") {
  RanksFixture f;
  const auto of_ranks = [&](int64_t ranks) {
    const std::string out = "run" + std::to_string(ranks);
    TrainConfig config = f.config_of(kFull, out, 4, ranks);
    config.steps = 5;
    config.save_every = {1, std::nullopt};
    config.eval_every = {1, std::nullopt};
    config.eval_at_start = true;
    config.digest_every = 1;
    config.load_best = true;
    RunBits bits = f.bits_of(config);
    for (const std::string& line : f.lines(out + "/metrics.jsonl")) {
      const Json json = parse_json(line, "a line");
      bits.root +=
          " " + json.find("state_digest")->as_string() + " " + json.find("eval_loss")->dump();
    }
    return bits;
  };
  const RunBits expected = of_ranks(1);
  REQUIRE(expected.steps.size() == 5);
  CHECK(of_ranks(2) == expected);
}

TEST_CASE("ranks: those on the same cores have a part each\\, or share all") {
  RanksFixture f;
  const std::vector<int> all = detect_topology().worker_cpus();
  const auto cores_of = [&](CpuShare share, int64_t thread_ranks, int threads) {
    TrainConfig config = f.config_of(kFull, "run", 4, thread_ranks);
    config.cpu_share = share;
    config.threads = threads;
    const auto opened = open_model(with_shared_cores(config));
    return std::pair(opened->workers, opened->cores);
  };
  const auto count = static_cast<int>(all.size());
  CHECK(cores_of({}, 1, 0) == std::pair(count, all));
  const auto part = std::max(1, count / 2);
  CHECK(cores_of({}, 2, 0) == std::pair(part, std::vector<int>{}));
  CHECK(cores_of({2, 0}, 1, count) == std::pair(count, std::vector<int>{}));  // too few for both
  if (count < 2) return;
  const std::vector<int> second(all.begin() + part, all.begin() + 2 * part);
  CHECK(cores_of({2, 0}, 1, 0) ==
        std::pair(part, std::vector<int>(all.begin(), all.begin() + part)));
  CHECK(cores_of({2, 1}, 1, 0) == std::pair(part, second));
}

TEST_CASE("ranks: links of a given speed slow a run down\\, and change no bit") {
  RanksFixture f;
  TrainConfig config = f.config_of(kFull, "fast", 4, 2);
  const RunBits expected = f.bits_of(config);
  config.out = f.dir / "slow";
  config.rank_links = {4e6, 1e-3};
  CHECK(f.bits_of(config) == expected);
  // In each direction, what the metrics count passes at that rate.
  for (const std::string& line : f.lines("slow/metrics.jsonl")) {
    const Json json = parse_json(line, "a line");
    const double bytes = json.find("bytes")->find("0/host->1/host")->as_double();
    CHECK(json.find("time_s")->as_double() >= bytes / 4e6);
  }
  // A step on slow links takes what is predicted.
  config.out = f.dir / "slower";
  config.rank_links = {1e6, 2e-3};
  config.steps = 7;
  REQUIRE(f.run(config) == ExitCode::done);
  RecordingReporter reporter;
  const PlannedRun run(config, open_model(config), reporter);
  double least = 1e9;
  for (const std::string& line : f.lines("slower/metrics.jsonl")) {
    const Json json = parse_json(line, "a line");
    if (json.find("step")->as_int() == 1) continue;  // which has no weights to give
    least = std::min(least, json.find("time_s")->as_double());
  }
  INFO("predicted " << run.times.step.time_s << " s, executed " << least << " s");
  if (!kSanitized) {
    CHECK(run.times.step.time_s > 0.9 * least);
    CHECK(run.times.step.time_s < 1.05 * least);
  }
}

TEST_CASE("ranks: what does not go together is refused") {
  RanksFixture f;
  const auto refused = [&](const std::string& part, const auto& change) {
    f.check_refused(f.config_of(kFull, "refused", 8, 2), part, change);
  };
  refused("several ranks need", [](TrainConfig& c) { c.parallel = ""; });
  refused("several ranks need", [](TrainConfig& c) { c.parallel = "single"; });
  refused("1, 2, 4 and 8 would do", [](TrainConfig& c) { c.thread_ranks = 3; });
  refused("1, 2, 3, 4, 6 and 12 would do", [](TrainConfig& c) { c.grad_accum = 12; });
  refused("1, 2, 3 and 6 would do", [](TrainConfig& c) {
    c.logical_shards = {};
    c.thread_ranks = 4;
    c.grad_accum = 6;
  });
  refused("names 2 devices", [](TrainConfig& c) { c.devices = "2xvirtual"; });
  refused("throttles thread ranks", [](TrainConfig& c) {
    c.rank_links = {1e9, 0};
    std::swap(c.thread_ranks, c.process_ranks);
  });
  refused("pipelines", [](TrainConfig& c) {
    c.thread_ranks = 1;
    c.parallel = "";
    c.devices = "virtual,virtual";
  });
  refused("weights that travel", [](TrainConfig& c) {
    c.thread_ranks = 1;
    c.parallel = "";
    c.devices = "virtual";
    c.policy = "mobius";
  });
}

namespace {

/// Does its work some times, then hangs.
void hang_at(const Body& right, const BodyContext& c, bool owner) {
  static std::atomic<int> calls{0};
  if (at_owner_of_embedding(c) == owner && ++calls > 100) {  // steps later
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  right.run(c);
}

/// The blocks of a layer from the last to the first.
class ReversedBlocks final : public RankWork {
 public:
  explicit ReversedBlocks(RankWork& right) : right_(right) {}
  ExpertRanks experts(int32_t layer) const override { return right_.experts(layer); }
  void exchange(Stream& stream, Place place, RowsGo go, std::span<const SentRows> out,
                std::span<const ReceivedRows> in) override {
    right_.exchange(stream, place, go, out, in);
  }
  View gradient_for(int32_t guest, View own) const override {
    return right_.gradient_for(guest, own);
  }
  void end_shard(const OpSet& ops, Stream& stream, Place place, int32_t shard) override {
    right_.end_shard(ops, stream, place, shard);
  }
  void reduce(const OpSet& ops, Stream& stream, std::span<const BlockId> blocks) override {
    const std::vector<BlockId> reversed(blocks.rbegin(), blocks.rend());
    right_.reduce(ops, stream, reversed);
  }
  void gather_norms(View norms) override { right_.gather_norms(norms); }
  void give(Stream& stream, std::span<const BlockId> blocks) override {
    right_.give(stream, blocks);
  }
  void fetch(Stream& stream, std::span<const BlockId> experts,
             std::span<const View> into) override {
    right_.fetch(stream, experts, into);
  }

 private:
  RankWork& right_;
};

}  // namespace

TEST_CASE("ranks: a thread that hangs is named\\, and the process ends") {
  if (kSanitized) return;  // they wait for threads that never end
  RanksFixture f;
  TrainConfig config = f.config_of(kFull, "run", 2, 2);
  config.steps = 1000;
  config.rank_limit = 1;
  std::set<char> named;
  for (const bool owner : {true, false}) {
    config.out = f.dir / (owner ? "owner" : "other");
    const std::string errors = config.out + ".stderr";
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      if (std::freopen(errors.c_str(), "w", stderr) == nullptr) std::_Exit(99);
      const BodyOfFaultyRank faulty(
          TaskKind::give,
          owner ? [](const Body& right, const BodyContext& c) { hang_at(right, c, true); }
                : [](const Body& right, const BodyContext& c) { hang_at(right, c, false); });
      RecordingReporter reporter;
      const Raised raised = raised_by([&] { train(config, reporter); });
      std::_Exit(100 + static_cast<int>(raised.code));  // the end comes before
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    INFO(read_file(errors));
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == static_cast<int>(ExitCode::device));
    const std::string line = read_file(errors);
    CHECK(line.find("hearth: rank ") != std::string::npos);
    CHECK(line.find(") gave no sign of life for ") != std::string::npos);
    const char rank = line[line.find("hearth: rank ") + 13];
    named.insert(rank);
    if (rank == '0') continue;  // which would have written it
    CHECK(read_file(config.out + "/journal.jsonl").find("rank_failed") != std::string::npos);
  }
  CHECK(named == std::set<char>{'0', '1'});
}

TEST_CASE("ranks: faults of one rank are caught") {
  RanksFixture f;
  const TrainedWith with{"mixtral"};
  const RunBits expected = f.bits_of(with, 4, 1);
  REQUIRE(expected.steps.size() == 3);
  const auto differs = [&](TaskKind kind, BodyOfFaultyRank::Run run, int64_t ranks) {
    const BodyOfFaultyRank faulty(kind, run);
    return f.bits_of(with, 4, ranks) != expected;
  };
  // Weights go in the step behind their update.
  const auto raises = [&](TaskKind kind, BodyOfFaultyRank::Run run) {
    const std::string step = kind == TaskKind::give ? " of step 2" : " of step 1";
    const BodyOfFaultyRank faulty(kind, run);
    const Raised raised = raised_by([&] { f.bits_of(with, 4, 4); });
    INFO(raised.message);
    return raised.code == ExitCode::internal && raised.says("rank ") && raised.says(step);
  };
  const BodyOfFaultyRank::Run nothing = [](const Body&, const BodyContext&) {};
  const BodyOfFaultyRank::Run skipped = [](const Body& right, const BodyContext& c) {
    if (!at_owner_of_embedding(c)) right.run(c);
  };
  CHECK(differs(TaskKind::shard, nothing, 1));
  CHECK(differs(TaskKind::shard, nothing, 2));
  CHECK(differs(TaskKind::update, skipped, 4));
  CHECK(raises(TaskKind::reduce, skipped));
  CHECK(raises(TaskKind::gather, skipped));
  CHECK(raises(TaskKind::give, skipped));
  CHECK(raises(TaskKind::give, [](const Body& right, const BodyContext& c) {  // one too many
    right.run(c);
    if (at_owner_of_embedding(c) && c.layer == -1) right.run(c);
  }));
  // Blocks in another order at one rank: found by the checking world unless their sizes are equal.
  const BodyOfFaultyRank::Run swapped = [](const Body& right, const BodyContext& c) {
    ReversedBlocks reversed(*c.ranks);
    BodyContext other = c;
    if (at_owner_of_embedding(c)) other.ranks = &reversed;
    right.run(other);
  };
  bool caught = false;
  const Raised raised = raised_by([&] { caught = differs(TaskKind::reduce, swapped, 2); });
  CHECK((caught || raised.code == ExitCode::internal));
  CHECK(f.bits_of(with, 4, 4) == expected);
}

TEST_CASE("ranks: an error of a rank ends all\\, with its code and a line that names it") {
  RanksFixture f;
  const TrainedWith with{"mixtral"};
  const BodyOfFaultyRank faulty(TaskKind::update, [](const Body& right, const BodyContext& c) {
    if (at_owner_of_embedding(c)) throw storage_error("no more memory");
    right.run(c);
  });
  const TrainConfig config = f.config_of(with, "run", 4, 4);
  const Raised raised = raised_by([&] { f.run(config); });
  INFO(raised.message);
  CHECK(raised.code == ExitCode::storage);
  CHECK(raised.says("rank "));
  CHECK(raised.says("): no more memory"));
  const std::string journal = read_file(f.dir / "run/journal.jsonl");
  CHECK(journal.find("no more memory") != std::string::npos);
}

TEST_CASE(
    "ranks: steps that are not finite are skipped by all\\, and the third in a row ends all") {
  RanksFixture f;
  TrainConfig config = f.config_of(kFull, "run", 4, 2);
  config.lr = 1e30;
  config.lr_schedule = LrSchedule::constant;
  config.warmup = 0;
  config.steps = 8;
  const Raised raised = raised_by([&] { f.run(config); });
  INFO(raised.message);
  CHECK(raised.code == ExitCode::numeric);
  CHECK(raised.says("rank 0 (host "));
  CHECK(raised.says("three steps in a row"));
}

}  // namespace hearth::test
