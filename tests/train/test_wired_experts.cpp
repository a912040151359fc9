// Weights of experts that travel compressed (--wire): bits that repeat, on other ranks and after a stop,
// errors that are kept, and losses near those of dense weights.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>

#include "base/json.h"
#include "base/sanitized.h"
#include "budget/plan_report.h"
#include "train/evaluate.h"
#include "train/planned_run.h"
#include "train/ranks_fixture.h"

namespace hearth::test {
namespace {

struct Domains {
  std::vector<int32_t> levels, domains;
  int64_t ranks() const {
    int64_t ranks = 1;
    for (const int32_t level : levels) ranks *= level;
    return ranks;
  }
  std::string text() const {
    std::string text = "levels";
    for (const int32_t n : levels) text += " " + std::to_string(n);
    text += ", domains";
    for (const int32_t n : domains) text += " " + std::to_string(n);
    return text;
  }
};

constexpr ExpertWire::Kind kResidual = ExpertWire::Kind::residual;
constexpr ExpertWire::Kind kAuto = ExpertWire::Kind::automatic;
const TrainedWith kBf16{"tied", {}, ComputeChoice::bf16};
const Domains kPairs{{2, 2}, {1, 2}}, kTwo{{2}, {2}}, kAll{{4}, {4}};

class WiredFixture : public RanksFixture {
 public:
  WiredFixture() { set_mode("hybrid-ep"); }

  /// Four shards. Experts of the tiny models have little in common, so any error is allowed.
  TrainConfig config_of(const TrainedWith& with, const std::string& out, const Domains& of,
                        ExpertWire::Kind kind = kResidual, bool consistent = false) const {
    TrainConfig config = RanksFixture::config_of(with, out, 4, of.ranks());
    config.levels = of.levels;
    config.domains = of.domains;
    config.wire = {.kind = kind, .ratio = kind == kResidual ? 8.0 : 1.0};
    config.wire_threshold = 1;
    config.wire_consistent = consistent;
    config.save_every.steps = 1;
    return config;
  }

  std::vector<StepMetrics> steps_of(const TrainConfig& config) {
    unbind_thread();
    RecordingReporter reporter;
    REQUIRE(train(config, reporter) == ExitCode::done);
    notes = reporter.notes;
    return reporter.steps;
  }

  /// The experts of a layer become alike: the first, and a little of themselves. Returns the norm of all.
  double make_experts_alike(const std::string& family, float apart) const {
    const std::string path = dir / (family + "/model.safetensors");
    std::string file = read_file(path);
    uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, file.data(), sizeof header_bytes);
    const Json header = parse_json(file.substr(8, header_bytes), "header");
    const auto values_of = [&](const std::string& name) {
      const JsonArray& at = header.find(name)->find("data_offsets")->as_array();
      const auto begin = static_cast<size_t>(at[0].as_int()),
                 end = static_cast<size_t>(at[1].as_int());
      char* const data = file.data() + 8 + header_bytes + begin;
      return std::pair(data, (end - begin) / sizeof(float));
    };
    int changed = 0;
    double squares = 0;
    for (const auto& [name, value] : header.as_object()) {
      const size_t at = name.find(".experts.");
      if (at == name.npos) continue;
      REQUIRE(value.find("dtype")->as_string() == "F32");
      const size_t number = at + std::strlen(".experts.");
      const std::string first = name.substr(0, number) + "0" + name.substr(name.find('.', number));
      const auto [to, count] = values_of(name);
      const auto [from, same] = values_of(first);
      REQUIRE(count == same);
      for (size_t i = 0; i < count; ++i) {
        float own = 0, common = 0;
        std::memcpy(&own, to + 4 * i, 4);
        std::memcpy(&common, from + 4 * i, 4);
        if (first != name) own = common + apart * own;
        std::memcpy(to + 4 * i, &own, 4);
        squares += static_cast<double>(own) * own;
      }
      changed += first != name ? 1 : 0;
    }
    REQUIRE(changed > 0);
    write(path, file);
    return std::sqrt(squares);
  }

  std::vector<std::string> notes;  // of the last steps_of
};

/// Its bits, steps with what travelled.
std::vector<std::pair<double, double>> wire_of(const std::vector<StepMetrics>& steps) {
  std::vector<std::pair<double, double>> wire;
  for (const StepMetrics& step : steps) {
    for (const WiredStep& layer : step.wire) wire.emplace_back(layer.ratio, layer.error);
  }
  return wire;
}

Json plan_with_wire(const TrainConfig& config) {
  RecordingReporter reporter;
  const PlannedRun run(config, open_model(config), reporter, Planning::sizes);
  return plan_json(run.model, run.times, run.model.plan.places);
}

}  // namespace

TEST_CASE("wired experts: consistent runs have the same bits on all ranks and domains") {
  WiredFixture f;
  const std::vector<Domains> ways =
      kSanitized ? std::vector<Domains>{kPairs}
                 : std::vector<Domains>{kPairs, kAll, {{2}, {1}}, {{4}, {2}}, {{2, 2}, {2, 1}}};
  for (const TrainedWith& with : {kBf16, kFull}) {
    const RunBits expected = f.bits_of(f.config_of(with, "two", kTwo, kResidual, true));
    REQUIRE(expected.steps.size() == 3);
    // Step 1 computes with the weights of the checkpoint, as dense ones do.
    const RunBits dense = f.bits_of(f.config_of(with, "dense", kTwo, ExpertWire::Kind::dense));
    CHECK(expected.steps[0] == dense.steps[0]);
    CHECK(expected.steps[1] != dense.steps[1]);
    for (const Domains& way : ways) {
      INFO(with.family << ": " << way.text());
      CHECK(f.bits_of(f.config_of(with, "way", way, kResidual, true)) == expected);
      remove_tree(f.dir / "way");
    }
    remove_tree(f.dir / "two");
    remove_tree(f.dir / "dense");
    if (kSanitized) break;
  }
}

TEST_CASE(
    "wired experts: owners that compute with exact weights repeat their bits\\, also resumed") {
  WiredFixture f;
  for (const bool consistent : {false, true}) {
    for (const TrainedWith& with : {kFull, kBf16}) {
      if (kSanitized && consistent != (with.compute == kBf16.compute)) continue;
      for (const Domains& of : {kPairs, kAll}) {
        if (kSanitized && !(of.text() == kPairs.text())) continue;
        INFO(with.family << ": " << of.text() << (consistent ? ", consistent" : ""));
        const std::vector<StepMetrics> whole =
            f.steps_of(f.config_of(with, "whole", of, kResidual, consistent));
        TrainConfig parts = f.config_of(with, "parts", of, kResidual, consistent);
        for (const int64_t stop : {1, 2}) REQUIRE(f.run_until(parts, stop) == ExitCode::stopped);
        const std::vector<StepMetrics> last = f.steps_of(parts);
        CHECK(f.root("parts") == f.root("whole"));
        CHECK(f.result("parts") == f.result("whole"));
        CHECK(wire_of(last) == wire_of({whole.back()}));
        // An evaluation has exact weights brought to rank 0.
        TrainConfig evaluated = f.config_of(with, "evaluated", of, kResidual, consistent);
        evaluated.eval_every.steps = 1;
        evaluated.eval_at_start = true;
        CHECK(wire_of(f.steps_of(evaluated)) == wire_of(whole));
        CHECK(f.root("evaluated") == f.root("whole"));
        for (const char* out : {"whole", "parts", "evaluated"}) remove_tree(f.dir / out);
      }
    }
  }
}

TEST_CASE("wired experts: an evaluation is of the weights that the result has") {
  WiredFixture f;
  for (const bool consistent : {false, true}) {
    for (const Domains& of : {kPairs, kAll}) {
      if (kSanitized && consistent != (of.text() == kPairs.text())) continue;
      TrainConfig config = f.config_of(kFull, "run", of, kResidual, consistent);
      config.eval_every.steps = 3;
      const std::vector<StepMetrics> steps = f.steps_of(config);
      REQUIRE(steps.back().eval_loss);
      RunConfig result = config;
      result.model = config.out + "/model";
      result.data = config.eval_data;
      result.parallel.clear();
      RecordingReporter reporter;
      const double loss = evaluate(result, reporter).find("loss")->as_double();
      INFO(of.text() << (consistent ? ", consistent" : ""));
      CHECK(loss == *steps.back().eval_loss);
      remove_tree(config.out);
    }
  }
}

TEST_CASE("wired experts: other ranks and domains go on only where that keeps the bits") {
  WiredFixture f;
  REQUIRE(f.run(f.config_of(kFull, "whole", kTwo, kResidual, true)) == ExitCode::done);
  const std::vector<Domains> path{kPairs, {{2}, {1}}, kAll};
  for (size_t i = 0; i < path.size(); ++i) {
    const TrainConfig part = f.config_of(kFull, "parts", path[i], kResidual, true);
    const bool last = i + 1 == path.size();
    REQUIRE((last ? f.run(part) : f.run_until(part, static_cast<int64_t>(i) + 1)) ==
            (last ? ExitCode::done : ExitCode::stopped));
  }
  CHECK(f.root("parts") == f.root("whole"));

  REQUIRE(f.run_until(f.config_of(kFull, "owners", kPairs), 1) == ExitCode::stopped);
  TrainConfig other = f.config_of(kFull, "owners", kTwo);
  const Raised raised = raised_by([&] { f.run(other); });
  INFO(raised.message);
  CHECK(raised.code == ExitCode::usage);
  CHECK(
      raised.says("domains of 1,2 on levels of 2,2 when the state was saved and are domains of 2"));
  other.allow_change = {"domains"};
  CHECK(f.run(other) == ExitCode::done);
}

TEST_CASE(
    "wired experts: what is above the threshold travels dense\\, with the bits of dense runs") {
  WiredFixture f;
  for (const TrainedWith& with : {kFull, kBf16}) {
    const RunBits dense = f.bits_of(f.config_of(with, "dense", kPairs, ExpertWire::Kind::dense));
    for (const ExpertWire::Kind kind : {kResidual, kAuto}) {
      for (const bool consistent : {false, true}) {
        if (kSanitized && consistent != (kind == kAuto)) continue;
        TrainConfig config = f.config_of(with, "wired", kPairs, kind, consistent);
        config.wire_threshold = 1e-4;
        CHECK(f.bits_of(config) == dense);
        remove_tree(config.out);
      }
    }
    remove_tree(f.dir / "dense");
    if (kSanitized) break;
  }
}

TEST_CASE("wired experts: ratio and error of each layer are in the metrics") {
  WiredFixture f;
  const std::vector<StepMetrics> steps = f.steps_of(f.config_of(kFull, "residual", kPairs));
  CHECK(steps.front().wire.empty());  // of the checkpoint
  for (size_t i = 1; i < steps.size(); ++i) {
    REQUIRE(steps[i].wire.size() == 3);
    for (const WiredStep& layer : steps[i].wire) {
      CHECK(layer.ratio > 4);  // 8, but for headers of small matrices
      CHECK(layer.ratio <= 8);
      CHECK(layer.error > 0.1);
      CHECK(layer.error < 1);
    }
  }
  const Json line = parse_json(f.lines("residual/metrics.jsonl").back(), "metrics");
  CHECK(line.find("wire")->find("ratio")->as_array().size() == 3);
  CHECK(line.find("wire")->find("error")->as_array()[2].as_double() == steps.back().wire[2].error);
  CHECK(std::ranges::any_of(f.notes, [](const std::string& note) {
    return note.find("weights of experts travel compressed") != note.npos;
  }));
  // The lower the threshold, the lower the ratio that auto finds, and each error is below.
  double before = 1e9;
  for (const double threshold : {1.0, 0.6, 0.01}) {
    TrainConfig config = f.config_of(kFull, "auto", kPairs, kAuto);
    config.wire_threshold = threshold;
    double ratio = 0;
    for (const auto& [of_layer, error] : wire_of(f.steps_of(config))) {
      CHECK(error <= threshold);
      ratio = std::max(ratio, of_layer);
    }
    INFO("threshold " << threshold << ": " << ratio << " after " << before);
    CHECK(ratio < before);
    before = ratio;
    remove_tree(config.out);
  }
  CHECK(before == 1);
  // Dense: none.
  const std::vector<StepMetrics> dense =
      f.steps_of(f.config_of(kFull, "dense", kPairs, ExpertWire::Kind::dense));
  CHECK(dense.back().wire.empty());
  const Json dense_line = parse_json(f.lines("dense/metrics.jsonl").back(), "metrics");
  CHECK(dense_line.find("wire") == nullptr);
  // What the ranks send in a step; four ranks that have all experts gain, in spite of the mean.
  const auto sent = [&](ExpertWire::Kind kind) {
    uint64_t bytes = 0;
    TrainConfig config = f.config_of(kFull, "sent", kAll, kind);
    const auto run = f.steps_of(config);
    for (const auto& [link, of_link] : run[1].bytes) bytes += of_link;
    remove_tree(config.out);
    return bytes;
  };
  CHECK(sent(kResidual) < sent(ExpertWire::Kind::dense));
}

TEST_CASE("wired experts: experts at devices have the bits of those at the host") {
  WiredFixture f;
  for (const TrainedWith& with : {kFull, kBf16}) {
    for (const bool consistent : {false, true}) {
      if (kSanitized && consistent) continue;
      const RunBits expected = f.bits_of(f.config_of(with, "host", kPairs, kResidual, consistent));
      TrainConfig config = f.config_of(with, "device", kPairs, kResidual, consistent);
      config.devices = "virtual:mem=1G";
      INFO(with.family << (consistent ? ", consistent" : ""));
      CHECK(f.bits_of(config) == expected);
      for (const char* out : {"host", "device"}) remove_tree(f.dir / out);
    }
    if (kSanitized) break;
  }
}

namespace {

/// Losses of runs with alike experts, dense and compressed, stay within what the error implies.
/// Cauchy and Schwarz: a change d of weights changes a loss by at most |gradient| |d| to the first order,
/// and |d| is at most the error times the norm of the experts. Twice that, for what is left out, and for
/// the gradient's change along the way.
void check_losses(WiredFixture& f, const std::string& family, int64_t steps) {
  INFO(family);
  const double norm = f.make_experts_alike(family, 0.02f);
  const auto run = [&](ExpertWire::Kind kind, double threshold, const std::string& out) {
    TrainConfig config = f.config_of({family}, out, kPairs, kind);
    config.steps = steps;
    config.lr = 2e-3;
    config.wire_threshold = threshold;
    config.wire.ratio = 10;
    config.save_every = {};
    const std::vector<StepMetrics> taken = f.steps_of(config);
    remove_tree(config.out);
    return taken;
  };
  const std::vector<StepMetrics> dense = run(ExpertWire::Kind::dense, 1, "dense");
  const double learned = dense.front().loss - dense.back().loss;
  for (const ExpertWire::Kind kind : {kResidual, kAuto}) {
    const std::vector<StepMetrics> wired = run(kind, 0.1, kind == kAuto ? "auto" : "residual");
    double most = 0, largest_error = 0, gradient = 0;
    for (size_t i = 0; i < dense.size(); ++i) {
      for (const WiredStep& layer : wired[i].wire) {
        largest_error = std::max(largest_error, layer.error);
        CHECK((kind == kAuto || layer.ratio == 1 || layer.error > 0));
      }
      gradient = std::max(gradient, dense[i].grad_norm);
      const double apart = std::fabs(wired[i].loss - dense[i].loss);
      most = std::max(most, apart);
      CHECK(apart <= 2 * gradient * largest_error * norm);
    }
    WARN(family << (kind == kAuto ? ", auto" : ", residual") << ": " << steps
                << " steps, error at most " << largest_error << ", losses " << most
                << " apart at most, loss " << dense.front().loss << " to " << dense.back().loss
                << ", ratio at the end " << wired.back().wire.back().ratio);
    CHECK(largest_error > 0);
    CHECK(largest_error <= 0.1);
    CHECK(most > 0);
    CHECK(most < 0.2 * learned);
  }
}

}  // namespace

TEST_CASE("wired experts: losses stay within what the error implies") {
  WiredFixture f;
  for (const std::string& family : kFamilies) {
    if (!kSanitized || family == kFull.family) check_losses(f, family, kSanitized ? 5 : 20);
  }
}

TEST_CASE("wired experts: losses stay within what the error implies\\, 200 steps", "[.long]") {
  WiredFixture f;
  for (const std::string& family : kFamilies) check_losses(f, family, 200);
}

TEST_CASE("wired experts: the plan knows the smaller bytes") {
  WiredFixture f;
  const auto plan_of = [&](ExpertWire::Kind kind, const Domains& of) {
    TrainConfig config = f.config_of(kFull, "planned", of, kind);
    config.rank_links = {1e5, 1e-4};
    if (kind == kResidual) config.wire.ratio = 50;
    return plan_with_wire(config);
  };
  const auto experts = [](const Json& plan) {
    return plan.find("volumes")->find("experts")->as_double();
  };
  const Json dense = plan_of(ExpertWire::Kind::dense, kAll), wired = plan_of(kResidual, kAll);
  // 6 experts of 3 x 16 x 12 in 3 layers; each goes to 3 ranks. The shared expert, in fixed point and
  // as f32: 3/4 of it from each rank.
  const double layer = 6 * 3 * 16 * 12 * 4.0;
  CHECK(experts(dense) == 3 * 3 * layer / 4);
  CHECK(std::fabs(experts(wired) - (experts(dense) / 50 + 3 * 2 * 0.75 * layer / 6)) < 1e-6);
  CHECK(wired.find("wire")->find("ratio")->as_double() == 50);
  CHECK(dense.find("wire") == nullptr);
  const auto step_s = [](const Json& plan) { return plan.find("time_s")->as_double(); };
  CHECK(step_s(wired) < step_s(dense));
}

TEST_CASE("wired experts: refused where no weights travel") {
  WiredFixture f;
  const auto refused = [&](const std::string& part, const auto& change) {
    f.check_refused(f.config_of(kFull, "refused", kPairs), part, change);
  };
  refused("weights of experts travel only with", [](TrainConfig& c) {
    c.parallel = "ep";
    c.levels.clear();
    c.domains.reset();
  });
  refused("there is one rank", [](TrainConfig& c) {
    c.thread_ranks = 1;
    c.levels = c.domains.emplace({1});
  });
  refused("experts are frozen", [](TrainConfig& c) { c.method = Method::lora; });
  // Nothing is at several ranks: said, but no error.
  RecordingReporter reporter;
  TrainConfig apart = f.config_of(kFull, "apart", {{4}, {1}});
  REQUIRE(train(apart, reporter) == ExitCode::done);
  CHECK(std::ranges::any_of(reporter.warnings, [](const std::string& warning) {
    return warning.find("changes nothing here") != warning.npos;
  }));
}

}  // namespace hearth::test
