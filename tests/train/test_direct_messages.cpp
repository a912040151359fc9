// Messages that go from the memory of one rank's device to that of another: the bits of one rank, and
// nothing of them passes the host.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "base/json.h"
#include "base/sanitized.h"
#include "budget/plan_report.h"
#include "plan/cost_model.h"
#include "plan/kind_costs.h"
#include "train/faulty_rank.h"
#include "train/planned_run.h"
#include "train/ranks_fixture.h"

namespace hearth::test {
namespace {

using Way = RanksFixture::Way;

class DirectMessages : public RanksFixture {
 public:
  DirectMessages() {
    set_mode("ep");
    set_devices("virtual:mem=64M");
    set_direct(true);
  }
};

/// What a schedule does with what goes between ranks.
struct MessageTasks {
  int at_device = 0, at_host = 0;  // rows, gradients, weights
  int small_at_host = 0;           // counts of rows, norms
  int copies = 0;                  // of rows, between the host and the device
};

MessageTasks message_tasks(const PlacedModel& model) {
  const Schedule& schedule = model.plan.train->schedule;
  MessageTasks found;
  for (const Task& task : schedule.tasks) {
    const bool device = schedule.is_device(task.place);
    if (task.kind == TaskKind::send_counts || task.kind == TaskKind::gather) {
      found.small_at_host += device ? 0 : 1;
    } else if (kind_costs(task.kind).talks) {
      ++(device ? found.at_device : found.at_host);
    }
    if (task.kind == TaskKind::copy && task.part.guests) ++found.copies;
  }
  return found;
}

}  // namespace

TEST_CASE("direct messages: the bits of one rank on the host") {
  DirectMessages f;
  if (kSanitized) return f.check_bits(kLora, 4, {Way{4, "ep", 2}});
  f.check_bits(kFull, 4, {Way{2, "ep", 2}, Way{4, "ep", 4}, Way{4, "ep", 2}});
  f.check_bits(kLora, 4, {Way{4, "ep", 2}});
  f.check_bits({"tied", {}, ComputeChoice::bf16}, 4, {Way{4, "ep", 4}});
}

TEST_CASE("direct messages: the bits of one rank where each computes with all experts") {
  DirectMessages f;
  f.check_bits(kFull, 4, {Way{2, "dp"}});
  if (kSanitized) return;
  f.check_bits(kLora, 4, {Way{4, "dp"}});
  f.check_bits({"tied", {}, ComputeChoice::bf16}, 4, {Way{2, "dp"}});
}

TEST_CASE("direct messages: the bits of one rank with expert domains") {
  DirectMessages f;
  const RunBits expected = f.bits_of(kFull, 4, 1);
  REQUIRE(expected.steps.size() == 3);
  for (const std::vector<int32_t>& domains : {std::vector<int32_t>{1, 2}, {2, 1}, {1, 1}, {2, 2}}) {
    f.set_mode("hybrid-ep");
    TrainConfig config = f.config_of(kFull, "domains", 4, 4);
    config.levels = {2, 2};
    config.domains = domains;
    CHECK(f.bits_of(config) == expected);
    remove_tree(config.out);
  }
}

TEST_CASE("direct messages: groups and recompute change no bit", "[.long]") {
  DirectMessages f;
  f.check_groups(Way{2, "ep"});
}

TEST_CASE("direct messages: a run goes on with them or without") {
  DirectMessages f;
  const std::string device = "virtual:mem=64M";
  f.check_path(kFull, {Way{2, "ep", 0, device}, Way{1}, Way{4, "ep", 2, device}});
}

TEST_CASE("direct messages: nothing of a step passes the host") {
  DirectMessages f;
  const std::string mode = GENERATE("ep", "dp");
  INFO(mode);
  f.set_mode(mode);
  const auto config_of = [&](const std::string& out, bool direct) {
    f.set_direct(direct);
    TrainConfig config = f.config_of(kFull, out, 4, 4);
    config.recompute = Recompute::none;
    config.steps = 1;
    return config;
  };
  for (const bool direct : {true, false}) {
    const TrainConfig config = config_of("plan", direct);
    RecordingReporter reporter;
    const PlannedRun run(config, open_model(config), reporter);
    const MessageTasks tasks = message_tasks(run.model);
    CHECK(tasks.at_device + tasks.at_host > 0);
    CHECK((direct ? tasks.at_host : tasks.at_device) == 0);
    CHECK(tasks.small_at_host > 0);
    CHECK((tasks.copies == 0) == (direct || mode == "dp"));
    const Json plan = plan_json(run.model, run.times, run.model.plan.places);
    CHECK(plan.find("direct_messages")->as_bool() == direct);
  }
  for (const bool direct : {true, false}) {
    REQUIRE(f.run(config_of(direct ? "direct" : "staged", direct)) == ExitCode::done);
  }
  CHECK(f.root("direct") == f.root("staged"));
  const auto link = [&](const std::string& run, const std::string& name) {
    const Json line = parse_json(f.lines(run + "/metrics.jsonl").front(), "a line");
    return line.find("bytes")->find(name)->as_double();
  };
  double sent = 0;
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      if (from == to) continue;
      const std::string between = std::to_string(from) + "/host->" + std::to_string(to) + "/host";
      CHECK(link("direct", between) == link("staged", between));
      if (from == 0) sent += link("staged", between);
    }
  }
  const std::string out = "0/virtual:0->0/host", in = "0/host->0/virtual:0";
  INFO("sent " << sent << "; out " << link("direct", out) << ", staged " << link("staged", out)
               << "; in " << link("direct", in) << ", staged " << link("staged", in));
  CHECK(link("direct", out) < link("staged", out) - sent / 2);
  CHECK(link("direct", out) < 0.1 * sent);
  CHECK(link("direct", in) < link("staged", in) - sent / 4);  // weights come in the next step
  CHECK(link("direct", in) < 0.1 * sent);
  const auto said = [&](const std::string& run) {
    std::string direct = "nothing";
    for (const std::string& line : f.lines(run + "/journal.jsonl")) {
      const Json event = parse_json(line, "journal");
      if (event.find("event")->as_string() == "messages") direct = event.find("direct")->dump();
    }
    return direct;
  };
  CHECK(said("direct") == "true");
  CHECK(said("staged") == "false");
}

TEST_CASE("direct messages: predictions have no copies of them") {
  DirectMessages f;
  std::vector<double> seconds;
  for (const bool direct : {true, false}) {
    f.set_direct(direct);
    const TrainConfig config = f.config_of(kFull, "plan", 2, 2);
    RecordingReporter reporter;
    const PlannedRun run(config, open_model(config), reporter);
    const PlacedModel& model = run.model;
    REQUIRE(model.rates);
    CostRates rates = model.rates->costs;
    rates.links.assign(2, {});
    rates.links[1].in.bytes_per_s = rates.links[1].out.bytes_per_s = 2e6;  // of the device
    const std::vector<BatchWork> batches{{64, 64, {{64, 1}}}};
    const StepCost cost =
        step_cost(model.plan.train->schedule, batches, model.opened->spec, model.table, rates);
    seconds.push_back(cost.link_s);
  }
  INFO(seconds[0] << " s, by way of the host " << seconds[1] << " s");
  CHECK(seconds[0] < 0.1 * seconds[1]);
}

TEST_CASE("direct messages: attention and experts apart have none") {
  DirectMessages f;
  f.set_mode("zebra", 1);
  const TrainConfig config = f.config_of(kFull, "plan", 4, 2);
  RecordingReporter reporter;
  const PlannedRun run(config, open_model(config), reporter, Planning::sizes);
  CHECK_FALSE(run.model.plan.shards.direct);
}

TEST_CASE("direct messages: an exchange that one rank left out is caught") {
  DirectMessages f;
  const BodyOfFaultyRank::Run skipped = [](const Body& right, const BodyContext& c) {
    if (!at_owner_of_embedding(c) || c.layer != 1) right.run(c);
  };
  for (const TaskKind kind : {TaskKind::send_rows, TaskKind::return_rows}) {
    const BodyOfFaultyRank faulty(kind, skipped);
    const Raised raised = raised_by([&] { f.bits_of({"mixtral"}, 4, 4); });
    INFO(raised.message);
    CHECK(raised.code == ExitCode::internal);
    CHECK(raised.says(" of step 1"));
  }
}

}  // namespace hearth::test
