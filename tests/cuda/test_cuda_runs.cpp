#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "cuda/cuda_fixture.h"
#include "support/raises.h"

namespace hearth::test {
namespace {

void check_close(const std::vector<StepMetrics>& actual, const std::vector<StepMetrics>& expected,
                 double tolerance) {
  REQUIRE(actual.size() == expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    INFO("step " << i + 1);
    CHECK(std::abs(actual[i].loss - expected[i].loss) < tolerance * expected[i].loss);
    CHECK(std::abs(actual[i].grad_norm - expected[i].grad_norm) <
          10 * tolerance * expected[i].grad_norm);
    CHECK(std::abs(actual[i].aux_loss - expected[i].aux_loss) < tolerance * expected[i].aux_loss);
  }
}

TEST_CASE("cuda: a model trains on a GPU as on the host, experts there or not") {
  CudaFixture f;
  const auto on_host = f.metrics_of(f.short_run("host", "host"));
  for (const std::string devices : {"cuda:0", "cuda:0,host"}) {
    INFO(devices);
    check_close(f.metrics_of(f.short_run(devices, devices)), on_host, 1e-5);
    CHECK(f.cuda.unpinned_copies() == 0);
  }
  CHECK(f.root("cuda:0") != f.root("host"));  // sums in another order
}

TEST_CASE("cuda: a refused launch ends the run with the error of its device") {
  CudaFixture f;
  f.cuda.fail_call("launch", 701, 5);
  const auto raised = raised_by([&] { f.run(f.short_run("refused", "cuda:0")); });
  CHECK(raised.code == ExitCode::device);
  INFO(raised.message);
  CHECK(raised.says("cuda:0: launch by "));
  CHECK(raised.says("(701)"));
}

TEST_CASE("cuda: bf16 products") {
  CudaFixture f;
  TrainConfig host = f.short_run("host", "host"), gpu = f.short_run("gpu", "cuda:0");
  host.compute = gpu.compute = ComputeChoice::bf16;
  check_close(f.metrics_of(gpu), f.metrics_of(host), 3e-3);
}

TEST_CASE("cuda: stopped and resumed a run ends with the same bits, work running in any order") {
  CudaFixture f(FakeCudaOptions{.seed = 7});
  for (const std::string devices : {"cuda:0", "cuda:0,host"}) {
    INFO(devices);
    TrainConfig whole = f.short_run("whole-" + devices, devices);
    REQUIRE(f.run(whole) == ExitCode::done);
    TrainConfig parts = whole;
    parts.out = f.dir / ("parts-" + devices);
    REQUIRE(f.run_until(parts, 2) == ExitCode::stopped);
    REQUIRE(f.run(parts) == ExitCode::done);
    CHECK(f.root("parts-" + devices) == f.root("whole-" + devices));
    CHECK(f.result("parts-" + devices) == f.result("whole-" + devices));
  }
}

TEST_CASE("cuda: adapters") {
  CudaFixture f;
  TrainConfig host = f.lora("host"), gpu = f.lora("gpu");
  host.steps = gpu.steps = 2;
  host.grad_accum = gpu.grad_accum = 1;
  host.compute = gpu.compute = ComputeChoice::f32;
  gpu.devices = "cuda:0";
  check_close(f.metrics_of(gpu), f.metrics_of(host), 1e-5);
}

TEST_CASE("cuda: evaluation and generation") {
  CudaFixture f;
  GenerateConfig config;
  config.model = f.dir / "base";
  config.data = {f.dir / "rows.jsonl"};
  config.seq_len = 96;
  config.threads = 2;
  config.data_cache = 0;
  config.compute = ComputeChoice::f32;
  config.prompt = "What is 3?";
  config.max_new_tokens = 4;
  RecordingReporter reporter;
  const auto loss = [&](const std::string& devices) {
    config.devices = devices;
    return evaluate(config, reporter).find("loss")->as_double();
  };
  CHECK(std::abs(loss("cuda:0") - loss("host")) < 1e-5 * loss("host"));
  const auto text = [&](const std::string& devices) {
    config.devices = devices;
    return generate(config, reporter, [](const std::string&) {}).text;
  };
  CHECK(text("cuda:0") == text("host"));
}

TEST_CASE("cuda: a GPU that fails ends the run with 6, and the saved state goes on") {
  CudaFixture f;
  TrainConfig whole = f.short_run("whole", "cuda:0");
  REQUIRE(f.run(whole) == ExitCode::done);
  TrainConfig config = f.short_run("run", "cuda:0");
  config.save_every.steps = 1;
  RecordingReporter reporter;
  reporter.on_step = [&](const StepMetrics& m) {
    if (m.step == 2) f.cuda.fail_work(700, 40);
  };
  const auto raised = raised_by([&] { train(config, reporter); });
  INFO(raised.message);
  CHECK(raised.code == ExitCode::device);
  CHECK(raised.says("cuda:0"));
}

/// The journal's lines on copies that devices dropped.
std::vector<Json> dropped(const CudaFixture& f, const std::string& out) {
  std::vector<Json> events;
  for (const std::string& line : f.lines(out + "/journal.jsonl")) {
    const Json event = parse_json(line, "journal");
    if (event.find("event")->as_string() == "dropped") events.push_back(event);
  }
  return events;
}

TEST_CASE("cuda: a GPU gives slots back when other programs take memory, and no bit changes") {
  CudaFixture f;
  TrainConfig config = f.short_run("alone", "cuda:0,host");
  config.policy = "mobius";
  config.steps = 4;
  REQUIRE(f.run(config) == ExitCode::done);
  CHECK(dropped(f, "alone").empty());

  // From step 2 on others leave a little, from step 3 on nothing; then all is free again.
  RecordingReporter reporter;
  std::vector<size_t> held;  // by the run, after each step
  reporter.on_step = [&](const StepMetrics&) {
    held.push_back(f.cuda.device_bytes(0));
    const size_t all = FakeCudaOptions{}.memory_bytes, own = held.back();
    if (held.size() == 1) f.cuda.take_memory(all - own - (size_t{100} << 20));
    if (held.size() == 2) f.cuda.take_memory(all - own);
    if (held.size() == 3) f.cuda.take_memory(0);
  };
  config.out = f.dir / "beside";
  REQUIRE(train(config, reporter) == ExitCode::done);
  CHECK(f.root("beside") == f.root("alone"));
  CHECK(f.result("beside") == f.result("alone"));
  const std::vector<Json> events = dropped(f, "beside");
  REQUIRE_FALSE(events.empty());
  CHECK(events.front().find("step")->as_int() == 2);
  CHECK(events.front().find("why")->as_string() == "other programs have taken memory");
  uint64_t bytes = 0;
  for (const Json& event : events) bytes += static_cast<uint64_t>(event.find("bytes")->as_int());
  CHECK(bytes > 0);
  CHECK(held.front() - held.back() >= bytes);  // the GPU has it back
  for (const StepMetrics& m : reporter.steps) {
    CHECK(m.peak_device_bytes.at("cuda:0") <= held.front());
  }
}

TEST_CASE("cuda: auto is the host, though there is a GPU") {
  CudaFixture f;
  TrainConfig config = f.short_run("run", "auto");
  CHECK(plan_of(config).json.find("devices")->dump() == R"(["host"])");
  CHECK(f.cuda.count("malloc_device") == 0);
}

}  // namespace
}  // namespace hearth::test
