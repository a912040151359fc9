// Runs on a device beside the host. A virtual device computes what the host computes, so wherever the
// parts of the model lie, the bits are the same.
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "base/log.h"
#include "setup/run_devices.h"
#include "topology/topology.h"
#include "train/least_memory.h"
#include "train/lora_fixture.h"
#include "train/planned_run.h"

namespace hearth::test {
namespace {

constexpr const char* kLists[] = {"virtual", "virtual,host", "virtual:cores=1"};

TEST_CASE("devices: a run on a virtual device ends with the bits of the host's") {
  TrainingFixture f;
  for (const ComputeChoice compute : {ComputeChoice::f32, ComputeChoice::bf16}) {
    const std::string type = compute == ComputeChoice::f32 ? "-f32" : "-bf16";
    TrainConfig on_host = f.config("host" + type);
    on_host.compute = compute;
    on_host.eval_data = on_host.data;
    REQUIRE(f.run(on_host) == ExitCode::done);
    for (const std::string list : kLists) {
      INFO(list << type);
      TrainConfig config = on_host;
      config.out = f.dir / (list + type);
      config.devices = list;
      REQUIRE(f.run(config) == ExitCode::done);
      CHECK(f.root(list + type) == f.root("host" + type));
      CHECK(f.result(list + type) == f.result("host" + type));
    }
  }
}

TEST_CASE("devices: named numbers of workers hold with more workers than cores") {
  TrainingFixture f;
  REQUIRE(f.run(f.config("host")) == ExitCode::done);
  TrainConfig config = f.config("crowded");
  config.threads = static_cast<int>(detect_topology().cores.size()) + 3;
  config.devices = "virtual:cores=2,host";
  const auto opened = open_model(config);
  CHECK(opened->workers == config.threads - 2);
  CHECK(opened->cores.empty());  // unbound, since they share the cores
  CHECK(opened->place(1).teams.at(0).workers == 2);
  REQUIRE(f.run(config) == ExitCode::done);
  CHECK(f.root("crowded") == f.root("host"));
  config.devices = "host:cores=1";
  CHECK(open_model(config)->workers == 1);
}

TEST_CASE("devices: a run stopped on one device goes on at another") {
  TrainingFixture f;
  REQUIRE(f.run(f.config("whole")) == ExitCode::done);
  TrainConfig parts = f.config("parts");
  parts.devices = "virtual";
  REQUIRE(f.run_until(parts, 3) == ExitCode::stopped);
  parts.devices = "virtual,host";
  REQUIRE(f.run_until(parts, 5) == ExitCode::stopped);
  parts.devices = "host";
  REQUIRE(f.run(parts) == ExitCode::done);
  CHECK(f.root("parts") == f.root("whole"));
}

TEST_CASE("devices: adapters are trained on a virtual device as on the host") {
  LoraFixture f;
  REQUIRE(f.run(f.lora("host")) == ExitCode::done);
  for (const std::string list : {"virtual", "virtual,host"}) {
    TrainConfig config = f.lora(list);
    config.devices = list;
    REQUIRE(f.run(config) == ExitCode::done);
    CHECK(f.root(list) == f.root("host"));
    CHECK(f.result(list) == f.result("host"));
  }
}

namespace {

/// Evaluates the rows of a fixture, and continues a prompt.
GenerateConfig after_training(const TrainingFixture& f) {
  GenerateConfig config;
  config.model = f.dir / "base";
  config.data = {f.dir / "rows.jsonl"};
  config.seq_len = 96;
  config.threads = 2;
  config.data_cache = 0;
  config.prompt = "What is 3?";
  config.max_new_tokens = 12;
  return config;
}

}  // namespace

TEST_CASE("devices: evaluation and generation are the same on a virtual device") {
  TrainingFixture f;
  GenerateConfig config = after_training(f);
  const auto results = [&](const std::string& devices) {
    RecordingReporter reporter;
    config.devices = devices;
    return evaluate(config, reporter).dump() +
           generate(config, reporter, [](const std::string&) {}).text;
  };
  const std::string on_host = results("host");
  CHECK(results("virtual") == on_host);
  CHECK(results("virtual,host") == on_host);
}

TEST_CASE("devices: a plan says what lies where, and a device too small is refused by name") {
  TrainingFixture f;
  TrainConfig config = f.config("run");
  config.devices = "virtual:mem=64Ki";
  config.seq_len += 3;  // shapes that no other case has measured on a larger device
  const auto raised = raised_by([&] { f.run(config); });
  CHECK(raised.code == ExitCode::usage);
  INFO(raised.message);
  CHECK(raised.says("virtual:0"));
  CHECK(raised.says("--devices virtual:mem="));
  CHECK(file_info(f.dir / "run/state").kind == FileKind::none);

  // `plan` says all that it knows: where the bytes go, what would fit, the time.
  RecordingReporter reporter;
  const PlanReport report = report_plan(config, reporter, PlanDetail::summary);
  INFO(report.text);
  CHECK_FALSE(report.fits);
  CHECK(report.refusal == raised.message);
  CHECK(report.text.find("memory of virtual:0") != std::string::npos);
  CHECK(report.text.find("DOES NOT FIT") != std::string::npos);
  CHECK(report.json.find("time_s")->is_number());
  CHECK(report.json.find("memory")->as_array().size() == 2);
  // And what it says would fit does.
  const int64_t needed = report.json.find("needed_bytes")->as_int();
  config.devices = "virtual:mem=" + std::to_string(needed);
  CHECK(report_plan(config, reporter, PlanDetail::summary).fits);
}

TEST_CASE("devices: a refused evaluation or generation names memory that does") {
  TrainingFixture f;
  const auto check = [](const std::function<void(const std::string& devices)>& run) {
    const auto raised = raised_by([&] { run("virtual:mem=64Ki"); });
    INFO(raised.message);
    CHECK(raised.code == ExitCode::usage);
    const std::string before = "more memory fits: --devices ";
    const size_t at = raised.message.find(before);
    REQUIRE(at != std::string::npos);
    const size_t begin = at + before.size();
    run(raised.message.substr(begin, raised.message.find(',', begin) - begin));
  };
  RecordingReporter reporter;
  GenerateConfig config = after_training(f);
  check([&](const std::string& devices) {
    config.devices = devices;
    evaluate(config, reporter);
  });
  check([&](const std::string& devices) {
    config.devices = devices;
    generate(config, reporter, [](const std::string&) {});
  });
}

TEST_CASE("devices: memory of a virtual device is memory of the process, planned and measured") {
  TrainingFixture f;
  TrainConfig config = f.config("run");
  config.devices = "virtual";
  RecordingReporter reporter;
  REQUIRE(train(config, reporter) == ExitCode::done);
  const std::string journal = read_file(f.dir / "run/journal.jsonl");
  INFO(journal);
  CHECK(journal.find("memory above the plan") == std::string::npos);
  const Json plan = parse_json(read_file(f.dir / "run/plan.json"), "plan.json");
  const JsonArray& places = plan.find("memory")->as_array();
  REQUIRE(places.size() == 2);
  bool found = false;
  for (const Json& line : places[0].find("lines")->as_array()) {
    if (line.find("name")->as_string() != "memory of virtual:0") continue;
    found = true;
    CHECK(line.find("bytes")->as_int() == places[1].find("peak_bytes")->as_int());
    CHECK(line.find("measured")->as_int() > 0);
    CHECK(line.find("measured")->as_int() <= line.find("bytes")->as_int());
  }
  CHECK(found);
}

/// The list of a device that has memory for no expert, and of the host. For runs that do not recompute.
std::string with_experts_on_host(TrainConfig config, const std::string& device) {
  const std::string mem = (device.find(':') == std::string::npos ? ":mem=" : "/mem=");
  config.devices = device + mem + "4096,host";
  config.recompute = Recompute::none;
  return device + mem + std::to_string(least_device_memory(config).front()) + ",host";
}

TEST_CASE("devices: metrics say what crossed the links and what a device's memory holds") {
  TrainingFixture f;
  const auto last_step = [&](const std::string& devices,
                             ComputeChoice compute = ComputeChoice::f32) {
    TrainConfig config = f.config(devices + (compute == ComputeChoice::f32 ? "" : "-bf16"));
    config.steps = 1;
    config.recompute = Recompute::none;
    config.devices = devices;
    config.compute = compute;
    RecordingReporter reporter;
    REQUIRE(train(config, reporter) == ExitCode::done);
    return reporter.steps.back();
  };
  const std::string experts_on_host = with_experts_on_host(f.config("mixed"), "virtual");
  TrainConfig in_bf16 = f.config("mixed");
  in_bf16.compute = ComputeChoice::bf16;
  const StepMetrics on_host = last_step("host"), whole = last_step("virtual"),
                    mixed = last_step(experts_on_host),
                    narrow =
                        last_step(with_experts_on_host(in_bf16, "virtual"), ComputeChoice::bf16);
  CHECK(on_host.bytes.empty());
  CHECK(on_host.peak_device_bytes.empty());
  CHECK(whole.peak_device_bytes.at("virtual:0") > mixed.peak_device_bytes.at("virtual:0"));
  CHECK(mixed.peak_device_bytes.at("virtual:0") > 0);
  // A token goes to the experts once in forward and its gradient once in backward, in the one layer
  // that has experts. Back come the rows of its two experts, and the gradient of the token.
  const auto vectors = static_cast<uint64_t>(mixed.tokens) * 32 * sizeof(float);
  CHECK(mixed.bytes.at("virtual:0->host") > 2 * vectors);
  CHECK(mixed.bytes.at("virtual:0->host") < 3 * vectors);
  CHECK(mixed.bytes.at("host->virtual:0") > 3 * vectors);
  CHECK(mixed.bytes.at("host->virtual:0") < 4 * vectors);
  // Tokens that enter bf16 products cross in bf16.
  CHECK(narrow.bytes.at("virtual:0->host") + vectors / 2 == mixed.bytes.at("virtual:0->host"));
  CHECK(narrow.bytes.at("host->virtual:0") == mixed.bytes.at("host->virtual:0"));
  for (const char* link : {"host->virtual:0", "virtual:0->host"}) {
    CHECK(whole.bytes.at(link) < vectors);
  }
}

TEST_CASE("devices: metrics say how long each resource was busy, and which bounded the step") {
  TrainingFixture f;
  TrainConfig config = f.config("run");
  config.steps = 3;
  config.recompute = Recompute::none;
  config.trace = f.dir / "trace.json";
  config.devices = with_experts_on_host(config, "virtual:cores=1/h2d=20M/d2h=200k/latency=100us");
  RecordingReporter reporter;
  REQUIRE(train(config, reporter) == ExitCode::done);
  for (const StepMetrics& m : reporter.steps) {
    INFO(to_json(m).dump());
    const auto in = static_cast<double>(m.bytes.at("host->virtual:0"));
    const auto out = static_cast<double>(m.bytes.at("virtual:0->host"));
    CHECK(m.busy.at("host->virtual:0") >= in / 20e6);
    CHECK(m.busy.at("virtual:0->host") >= out / 200e3);
    CHECK(m.busy.at("virtual:0") > 0);
    for (const auto& [name, seconds] : m.busy) {
      if (name == "cpu") {
        CHECK(seconds <= config.threads * m.time_s);
      } else if (name != "io") {
        CHECK(seconds <= m.time_s);
      }
    }
    CHECK(m.stall_s.size() == 3);
    CHECK(m.stall_s.at("virtual:0") + m.busy.at("virtual:0") <= m.time_s);
    CHECK(m.cpu_s.at("products") > 0);
    CHECK(m.cpu_s.at("sweeps") > 0);
    const double cpu = m.cpu_s.at("products") + m.cpu_s.at("sweeps");
    CHECK(cpu == m.busy.at("cpu"));
    CHECK(std::abs(cpu + m.cpu_s.at("waiting") - config.threads * m.time_s) < 1e-9);
    CHECK(m.limit == "virtual:0->host");  // by far the slowest part
  }

  // The copies of the trace are the bytes of its step, the last one, at the speed of their link.
  const Json trace = parse_json(read_file(config.trace), "trace.json");
  std::map<std::string, uint64_t> bytes;
  for (const Json& event : trace.find("traceEvents")->as_array()) {
    const Json* kind = event.find("cat");
    if (kind == nullptr || kind->as_string() != "copy") continue;
    const Json& copy = *event.find("args");
    const std::string link = copy.find("link")->as_string();
    const auto carried = static_cast<double>(copy.find("bytes")->as_int());
    bytes[link] += static_cast<uint64_t>(carried);
    INFO(event.dump());
    const double least = 1e-4 + carried / (link == "host->virtual:0" ? 20e6 : 200e3);
    CHECK(event.find("dur")->as_double() * 1e-6 >= least - 1e-9);
  }
  CHECK(bytes == reporter.steps.back().bytes);
}

TEST_CASE("devices: a step on the host is bounded by its workers") {
  TrainingFixture f;
  TrainConfig config = f.config("run");
  config.steps = 2;
  RecordingReporter reporter;
  REQUIRE(train(config, reporter) == ExitCode::done);
  for (const StepMetrics& m : reporter.steps) {
    INFO(to_json(m).dump());
    CHECK(m.limit == "cpu");
    CHECK(m.busy.size() == 2);
    CHECK(m.cpu_s.at("products") > 0);
    CHECK(m.cpu_s.at("sweeps") > 0);
    CHECK(m.cpu_s.at("waiting") >= 0);
    CHECK(m.stall_s.at("cpu") < m.time_s);
  }
}

/// The copies of a step as a plan predicts them: their seconds, and how many they are.
struct PredictedCopies {
  double seconds = 0, count = 0, tokens = 0;
  std::string limit;
};
PredictedCopies predicted_copies(const TrainConfig& config) {
  RecordingReporter reporter;
  const PlannedRun run(config, open_model(config, Weights::may_be_absent), reporter);
  PredictedCopies copies;
  copies.seconds = run.times.work.phases.at("copy");
  copies.tokens = run.times.tokens;
  copies.limit = run.times.use.limit();
  for (const Task& task : run.model.plan.train->schedule.tasks)
    copies.count += task.kind == TaskKind::copy;
  return copies;
}

TEST_CASE("devices: a step over slow links is predicted by what its copies take") {
  TrainingFixture f;
  f.assumed.reset();
  TrainConfig config = f.config("run");
  config.steps = 1;
  config.devices = "virtual,host";
  RecordingReporter reporter;
  REQUIRE(train(config, reporter) == ExitCode::done);
  const StepMetrics& step = reporter.steps.back();
  const auto in = static_cast<double>(step.bytes.at("host->virtual:0"));
  const auto out = static_cast<double>(step.bytes.at("virtual:0->host"));

  // What a step of the run carried, over the rates of each list; a mean step has as many tokens or so.
  const auto check = [&](const std::string& keys, double h2d, double d2h, double latency) {
    config.devices = "virtual:" + keys + ",host";
    const PredictedCopies copies = predicted_copies(config);
    const double like = copies.tokens / static_cast<double>(step.tokens);
    const double expected = like * (in / h2d + out / d2h) + copies.count * latency;
    INFO(keys << ": " << copies.seconds << " s, expected " << expected);
    CHECK(copies.seconds > expected / 1.5);
    CHECK(copies.seconds < expected * 1.5);
    return copies.limit;
  };
  // So slow that no sanitizer makes the computation slower.
  CHECK(check("h2d=100/d2h=100", 100, 100, 0).find("->") != std::string::npos);
  CHECK(check("h2d=100/d2h=1G", 100, 1e9, 0) == "host->virtual:0");
  CHECK(check("h2d=1G/d2h=100", 1e9, 100, 0) == "virtual:0->host");
  CHECK(check("h2d=10G/d2h=10G/latency=2s", 1e10, 1e10, 2).find("->") != std::string::npos);
}

TEST_CASE("devices: lists that this version cannot run are refused") {
  TrainingFixture f;
  for (const auto& [list, part] :
       {std::pair("9xvirtual", "9 devices for 2 layers, the embedding and the head"),
        {"cuda:0", "this program has no CUDA"},
        {"virtual,cuda:0", "this program has no CUDA"}}) {
    TrainConfig config = f.config("run");
    config.devices = list;
    const auto raised = raised_by([&] { f.run(config); });
    INFO(list << ": " << raised.message);
    CHECK(raised.code == ExitCode::usage);
    CHECK(raised.says(part));
  }
}

TEST_CASE("devices: --gpu-memory without a GPU is said to have no effect") {
  const auto warnings = [](const std::string& devices, uint64_t gpu_memory) {
    std::string told;
    set_warning_sink([&](const std::string& line) { told += line + "\n"; });
    open_devices({devices, gpu_memory, uint64_t{1} << 30, {0, 1, 2}});
    set_warning_sink({});
    return told;
  };
  for (const char* devices : {"host", "virtual", "virtual,host", "auto"}) {
    INFO(devices);
    CHECK(warnings(devices, 1 << 30) == "--gpu-memory has no effect: --devices names no GPU\n");
    CHECK(warnings(devices, 0).empty());
  }
}

}  // namespace
}  // namespace hearth::test
