#include "record/run_directory.h"

#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "record/journal.h"
#include "record/metrics.h"
#include "support/failing_calls.h"
#include "support/raises.h"
#include "support/temporary_directory.h"

using namespace hearth;
using test::raised_by;

namespace {

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

StepMetrics metrics_of(int64_t step) {
  StepMetrics m;
  m.step = step;
  return m;
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

TEST_CASE("a run directory is made, and owned by one") {
  test::TemporaryDirectory d;
  const std::string out = d / "runs/first";
  {
    const RunDirectory run(out);
    CHECK(std::filesystem::exists(out + "/.lock"));
    write(out + "/.tmp-x", "");
    const auto e = raised_by([&] { RunDirectory second(out); });
    CHECK(e.code == ExitCode::usage);
    CHECK(e.says(out));
    CHECK(std::filesystem::exists(out + "/.tmp-x"));
  }
  const RunDirectory again(out);
}

TEST_CASE("what is no directory is refused") {
  test::TemporaryDirectory d;
  write(d / "file", "x");
  const auto e = raised_by([&] { RunDirectory run(d / "file"); });
  CHECK(e.code == ExitCode::usage);
  CHECK(content(d / "file") == "x");
  CHECK(raised_by([&] { RunDirectory run(d / "file/below"); }).code != ExitCode::done);
  CHECK(raised_by([&] { RunDirectory run(""); }).code == ExitCode::usage);
}

TEST_CASE("opening changes nothing, cleaning removes what is unfinished and cuts torn lines") {
  test::TemporaryDirectory d;
  const std::string out = d / "run";
  std::filesystem::create_directories(out + "/state/.tmp-step-00000002");
  std::filesystem::create_directories(out + "/state/step-00000001");
  std::filesystem::create_directories(out + "/.trash-a/b");
  write(out + "/state/.tmp-step-00000002/x", "x");
  write(out + "/.tmp-plan.json", "x");
  write(out + "/metrics.jsonl", "{\"step\":1}\n{\"st");
  write(out + "/journal.jsonl", "torn");
  write(out + "/kept", "x");

  const RunDirectory run(out);
  CHECK(std::filesystem::exists(out + "/.tmp-plan.json"));
  CHECK(content(run.journal()) == "torn");
  run.clean();
  for (const char* gone : {"/state/.tmp-step-00000002", "/.trash-a", "/.tmp-plan.json"}) {
    CHECK_FALSE(std::filesystem::exists(out + gone));
  }
  CHECK(std::filesystem::exists(out + "/state/step-00000001"));
  CHECK(std::filesystem::exists(out + "/kept"));
  CHECK(content(run.metrics()) == "{\"step\":1}\n");
  CHECK(content(run.journal()).empty());
}

TEST_CASE("a start that writes nothing leaves nothing") {
  test::TemporaryDirectory d;
  { const RunDirectory run(d / "a/b/run/"); }
  CHECK_FALSE(std::filesystem::exists(d / "a"));
  std::filesystem::create_directory(d / "there");
  { const RunDirectory run(d / "there"); }
  CHECK(std::filesystem::is_empty(d / "there"));
  {
    const RunDirectory run(d / "c/run");
    write(d / "c/other", "x");  // of somebody else
  }
  CHECK_FALSE(std::filesystem::exists(d / "c/run"));
  CHECK(std::filesystem::exists(d / "c/other"));
  { RunDirectory(d / "kept").write_plan(Json(JsonObject{})); }
  CHECK(std::filesystem::exists(d / "kept/.lock"));
  { const RunDirectory run(d / "kept"); }  // a lock that was there stays
  CHECK(std::filesystem::exists(d / "kept/.lock"));
}

TEST_CASE("a lock that cannot be made leaves no directory") {
  test::TemporaryDirectory d;
  std::filesystem::create_directory(d / "there");
  for (const char* out : {"a/b/run", "there"}) {
    for (int n = 1;; ++n) {
      INFO(out << ", call " << n);
      test::FailingCalls calls;
      calls.error = ENOSPC;
      calls.fail_at = n;
      bool made = true;
      {
        FileCallsOverride guard(calls);
        try {
          const RunDirectory run(d / out);
        } catch (const Error& e) {
          CHECK(e.code() == ExitCode::storage);
          made = false;
        }
      }
      if (made) {
        CHECK(n > 1);
        std::filesystem::remove_all(d / "a");  // the end may have failed
        break;
      }
      CHECK_FALSE(std::filesystem::exists(d / "a"));
      CHECK(std::filesystem::is_empty(d / "there"));
    }
  }
}

namespace {

// A file system that gives the directory of the same name another number.
class OtherDevice : public test::LayeredCalls {
 public:
  int status(const char* path, bool follow_links, struct stat& status) override {
    const int result = below_.status(path, follow_links, status);
    ++status.st_dev;
    return result;
  }
};

}  // namespace

TEST_CASE("a run directory, its making failed at every call") {
  for (int n = 1, failed = 1; failed != 0; ++n) {
    test::TemporaryDirectory d;
    test::FailingCalls failing;
    failing.fail_at = n;
    const FileCallsOverride use(failing);
    try {
      const RunDirectory run(d / "run");
      run.require_there();
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::storage);
    }
    failed = failing.failed();
  }
}

TEST_CASE("a run directory that is no longer where it was locked is told") {
  test::TemporaryDirectory d;
  const auto lost = [](const RunDirectory& run) {
    return raised_by([&] { run.require_there(); }).says("moved or removed");
  };
  std::filesystem::create_directory(d / "above");
  const RunDirectory run(d / "above/run");
  run.require_there();
  {
    OtherDevice other;
    const FileCallsOverride use(other);
    CHECK(lost(run));
  }
  {
    test::FailingCalls failing;
    failing.fail_at = 1;
    const FileCallsOverride use(failing);
    run.require_there();  // says nothing of where the directory is
    CHECK(failing.failed());
  }
  std::filesystem::rename(d / "above/run", d / "above/moved");
  CHECK(lost(run));
  std::filesystem::create_directory(d / "above/run");
  CHECK(lost(run));
  std::filesystem::remove_all(d / "above");
  write(d / "above", "a file");
  CHECK(lost(run));
}

TEST_CASE("configuration and plan are replaced as a whole") {
  test::TemporaryDirectory d;
  const RunDirectory run(d / "run");
  run.clean();
  run.write_config({{"lr", "1e-05", false}, {"data", "[\"a\"]", false}});
  CHECK(content(d / "run/config.yaml").find("\nlr: 1e-05\ndata: [\"a\"]\n") != std::string::npos);
  run.write_config({{"lr", "1", false}});
  CHECK(content(d / "run/config.yaml").find("\nlr: 1\n") != std::string::npos);
  run.write_plan(Json(JsonObject{{"fits", true}}));
  CHECK(parse_json(content(d / "run/plan.json"), "plan").find("fits")->as_bool());
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(d / "run")) {
    files += entry.is_regular_file();
  }
  CHECK(files == 3);  // with .lock
}

TEST_CASE("a line of metrics has the keys of the contract") {
  StepMetrics m;
  m.step = 3;
  m.loss = 0.1;
  m.grad_norm = std::numeric_limits<double>::quiet_NaN();
  m.bytes = {{"disk", 7}};
  m.busy = {{"host", 0.5}};
  m.limit = "host";
  m.expert_load = {1.5, 2};
  const Json json = parse_json(to_json(m).dump(), "metrics");
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.as_object()) keys.push_back(key);
  CHECK(keys == std::vector<std::string>{"step",
                                         "time",
                                         "epoch",
                                         "loss",
                                         "aux_loss",
                                         "grad_norm",
                                         "lr",
                                         "tokens",
                                         "trained_tokens",
                                         "time_s",
                                         "tokens_per_s",
                                         "bound_pct",
                                         "peak_rss_bytes",
                                         "peak_device_bytes",
                                         "bytes",
                                         "busy",
                                         "limit",
                                         "stall_s",
                                         "late_load_s",
                                         "cpu_s",
                                         "expert_load",
                                         "expert_hit_rate"});
  CHECK(json.find("step")->as_int() == 3);
  CHECK(json.find("loss")->as_double() == 0.1);
  CHECK(json.find("grad_norm")->is_null());
  CHECK(json.find("bytes")->find("disk")->as_int() == 7);
  CHECK(json.find("expert_load")->as_array().size() == 2);
  CHECK(json.find("expert_hit_rate")->is_null());
  CHECK(json.find("late_load_s")->as_double() == 0);
  m.expert_hit_rate = 0.75;
  m.late_load_s = 0.5;
  CHECK(to_json(m).find("expert_hit_rate")->as_double() == 0.75);
  CHECK(to_json(m).find("late_load_s")->as_double() == 0.5);
  CHECK(json.find("limit")->as_string() == "host");
  CHECK(json.find("prediction") == nullptr);
  m.prediction = {.token_hit = 0.25, .least_quarter = {}, .byte_hit = 1};
  CHECK(to_json(m).find("prediction")->dump() ==
        R"({"token_hit": 0.25, "least_quarter": null, "byte_hit": 1.0})");
  CHECK(json.find("residency") == nullptr);
  m.residency = {0.12345, 1};
  CHECK(to_json(m).find("residency")->dump() == "[0.123, 1.0]");
  m.residency.clear();

  const auto device_bytes = [&m](const std::map<std::string, uint64_t>& devices) {
    m.peak_device_bytes = devices;
    return to_json(m).find("peak_device_bytes")->dump();
  };
  CHECK(device_bytes({}) == "0");
  CHECK(device_bytes({{"virtual:0", 7}}) == "7");
  CHECK(device_bytes({{"virtual:0", 7}, {"virtual:1", 0}}) ==
        R"({"virtual:0": 7, "virtual:1": 0})");
}

TEST_CASE("a line that cannot be written is tried once more") {
  test::TemporaryDirectory d;
  const std::string path = d / "metrics.jsonl";
  {
    test::FailingCalls calls;
    calls.error = ENOSPC;
    FileCallsOverride guard(calls);
    MetricsLog log(path);
    log.append(metrics_of(1));
    calls.fail_at = calls.count() + 1;
    log.append(metrics_of(2));  // the second try
    CHECK(calls.failed());
    // A line that tears in the middle, and then the disk stays full.
    calls.piece = 5;
    calls.fail_at = calls.count() + 3;
    calls.persistent = true;
    CHECK(raised_by([&] { log.append(metrics_of(3)); }).code == ExitCode::storage);
  }
  cut_torn_line(path);
  const std::string text = content(path);
  CHECK(text == to_json(metrics_of(1)).dump() + "\n" + to_json(metrics_of(2)).dump() + "\n");
}

TEST_CASE("events of the journal") {
  test::TemporaryDirectory d;
  {
    Journal journal(d / "journal.jsonl");
    journal.event("resume", {{"step", 5}, {"from", "state/step-00000005"}});
    journal.event("end");
  }
  Journal(d / "journal.jsonl").event("again");
  const std::string text = content(d / "journal.jsonl");
  const Json first = parse_json(text.substr(0, text.find('\n')), "journal");
  CHECK(first.as_object()[0].first == "event");
  CHECK(first.find("event")->as_string() == "resume");
  CHECK(first.find("step")->as_int() == 5);
  const std::string time = first.find("time")->as_string();
  CHECK(time.size() == 24);
  CHECK(time[10] == 'T');
  CHECK(time.back() == 'Z');
  CHECK(std::count(text.begin(), text.end(), '\n') == 3);
}
