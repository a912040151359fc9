// hearth plan --machine: plans for a machine that is only described, and runs of such plans.
#include <algorithm>
#include <cstdlib>
#include <optional>

#include "support/allowed_cpus.h"
#include "support/machine_file.h"
#include "support/set_variable.h"
#include "topology/topology.h"
#include "workplace.h"

using namespace hearth;
using namespace hearth::test;

namespace {

/// A table that times every task.
std::string table(const std::string& device, const std::string& seconds,
                  const std::string& links = "") {
  std::string entries;
  for (const char* kind :
       {"embed", "attention", "mlp", "dispatch", "experts", "combine", "head", "norm", "update"}) {
    for (const char* phase : {"forward", "backward"}) {
      entries += std::string(entries.empty() ? "" : ",") + R"({"kind": ")" + kind +
                 R"(", "phase": ")" + phase + R"(", "dtype": "f32", "units": [1, 1000000],
                 "seconds": [)" +
                 seconds + ", " + seconds + "]}";
    }
  }
  return R"({"format": "hearth-costs-1", "device": ")" + device +
         R"(", "machine": "m", "made": 1, "entries": [)" + entries + R"(], "links": [)" + links +
         "]}";
}

/// Two packages with two cores each, and an accelerator below each.
FileMachine server() {
  FileMachine machine;
  machine.bridges = {{0, "0000:[16-1b]", {{"0000:17:00.0"}}},
                     {1, "0000:[97-9b]", {{"0000:98:00.0"}}}};
  return machine;
}

struct Described : Workplace {
  Described() {
    write(d / "m.xml", machine_file(server()));
    const ProgramResult told = run({"doctor", "--topology", d / "m.xml", "--json"});
    REQUIRE(told.exit_code == 0);
    write(d / "m.json", told.out);
    write(d / "host.json", table("host", "1e-4"));
    write(d / "gpu.json", table("virtual:0", "1e-5",
                                R"({"link": "host->virtual:0", "bytes_per_s": 1e9,
                                    "latency_s": 1e-5, "together": 1e9})"));
  }
  /// The options of `plan` for the described machine.
  std::vector<std::string> words(std::vector<std::string> more) const {
    std::vector<std::string> words{"plan", "--model",      d / "model", "--micro-batch",
                                   "2",    "--grad-accum", "2",         "--seq-len",
                                   "64",   "--json",       "--machine", d / "m.json"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Json plan(const std::vector<std::string>& more) const {
    const ProgramResult r = run(words(more));
    INFO(r.err);
    REQUIRE(r.exit_code == 0);
    return parse_json(r.out, "plan");
  }
  std::vector<std::string> tables() const {
    return {"--machine", d / "host.json", "--machine", d / "gpu.json"};
  }
};

std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_CASE("plan --machine: the places, links and times are the described machine's") {
  const Described w;
  std::optional<SetVariable> rates(std::in_place, "HEARTH_RATES", "");
  const Json plan = w.plan(with(w.tables(), {"--devices", "2xvirtual:mem=1Gi,host"}));
  CHECK(plan.find("workers")->as_int() == 4);
  const JsonArray& places = plan.find("places")->as_array();
  REQUIRE(places.size() == 4);  // two nodes, two devices
  const auto text = [&](size_t at, const char* key) { return places[at].find(key)->dump(); };
  // The file has CPUs 0 to 3 in package 0 and 4 to 7 in package 1, two of each core.
  CHECK(text(0, "nodes") == "[0]");
  CHECK(text(1, "place") == "\"host:1\"");
  CHECK(text(2, "root") == "\"0000-16\"");
  CHECK(text(3, "root") == "\"0000-97\"");
  CHECK(text(2, "package") == "0");
  CHECK(text(3, "package") == "1");
  std::vector<std::string> cpus;
  for (size_t at = 0; at < 4; ++at) cpus.push_back(text(at, "cpus"));
  for (const std::string& list : cpus) CHECK(list != "[]");
  CHECK(places[0].find("mem_bytes")->as_uint() == kNodeBytes);  // of node 0
  CHECK(places[1].find("mem_bytes")->as_uint() == kNodeBytes);
  const Json alone = w.plan({"--devices", "host:1"});
  REQUIRE(alone.find("places")->as_array().size() == 1);
  CHECK(alone.find("places")->as_array()[0].find("nodes")->dump() == "[1]");
  CHECK(alone.find("places")->as_array()[0].find("mem_bytes")->as_uint() == kNodeBytes);
  CHECK(places[2].find("h2d")->as_double() == 1e9);
  CHECK(places[2].find("latency_s")->as_double() == 1e-5);
  // What the file says of the link, as no table has it.
  CHECK(places[3].find("h2d")->as_double() == 31507692000);
  // The same CPUs as in a plan by the file itself, and in one whose times are unknown: virtual:1
  // has no table.
  CHECK(plan.find("time_s")->is_null());
  std::vector<std::string> by_file = with(w.words({}), {"--devices", "2xvirtual:mem=1Gi,host"});
  *std::find(by_file.begin(), by_file.end(), "--machine") = "--topology";
  *std::find(by_file.begin(), by_file.end(), w.d / "m.json") = w.d / "m.xml";
  rates.emplace("HEARTH_RATES", "assumed");
  const ProgramResult r = w.run(by_file);
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  const Json other = parse_json(r.out, "plan");
  for (size_t at = 0; at < 4; ++at) {
    CHECK(other.find("places")->as_array()[at].find("cpus")->dump() == cpus[at]);
  }
  CHECK(other.find("workers")->as_int() == 4);
}

TEST_CASE("plan --machine: nothing of this machine counts, so equal commands print equal numbers") {
  const Described w;
  for (const std::string devices : {"host", "virtual:mem=1Gi,host"}) {
    INFO(devices);
    const std::vector<std::string> words = w.words(with(w.tables(), {"--devices", devices}));
    const ProgramResult first = w.run(words);
    INFO(first.err);
    REQUIRE(first.exit_code == 0);
    CHECK(parse_json(first.out, "plan").find("time_s")->as_double() > 0);
    CHECK(w.run(words).out == first.out);
    const SetVariable isa("HEARTH_ISA", "avx2"), nodes("HEARTH_NODES", "1");
    CHECK(w.run(words).out == first.out);
  }
}

TEST_CASE("plan --machine: the processor's bf16 products choose the compute type") {
  const Described w;
  const auto type = [&](const std::string& isa) {
    std::string text = content(w.d / "m.json");
    const size_t at = text.find(R"("isa": null)");
    REQUIRE(at != std::string::npos);
    write(w.d / "isa.json", text.replace(at, 11, R"("isa": ")" + isa + "\""));
    std::vector<std::string> words = w.words({"--machine", w.d / "host.json"});
    *std::find(words.begin(), words.end(), w.d / "m.json") = w.d / "isa.json";
    const ProgramResult r = w.run(words);
    INFO(r.err);
    REQUIRE(r.exit_code == 0);
    return parse_json(r.out, "plan").find("compute_dtype")->as_string();
  };
  CHECK(type("avx2") == "f32");
  CHECK(type("avx512_core_amx") == "bf16");
}

TEST_CASE("plan --machine: without a table the memory is planned, and the time is unknown") {
  const SetVariable measured("HEARTH_RATES", "");
  const Described w;
  const ProgramResult r = w.run(w.words({}));
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  CHECK(parse_json(r.out, "plan").find("time_s")->is_null());
  std::vector<std::string> text = w.words({});
  text.erase(std::find(text.begin(), text.end(), "--json"));
  CHECK(w.run(text).out.find("not predicted, --machine has no cost table of host") !=
        std::string::npos);
}

TEST_CASE("plan --machine: what is no description of a machine is refused in one line") {
  const Described w;
  const std::string good = content(w.d / "m.json");
  const auto refused = [&](const std::string& text, const std::string& part) {
    write(w.d / "bad.json", text);
    std::vector<std::string> words = w.words({});
    *std::find(words.begin(), words.end(), w.d / "m.json") = w.d / "bad.json";
    return one_line(w.run(words), 3, "bad.json: " + part);
  };
  const auto changed = [&](const std::string& from, const std::string& to) {
    const size_t at = good.find(from);
    REQUIRE(at != std::string::npos);
    return std::string(good).replace(at, from.size(), to);
  };
  CHECK(refused("", ""));
  CHECK(refused("{}", "neither the JSON of hearth doctor"));
  CHECK(refused("[1]", "neither the JSON of hearth doctor"));
  CHECK(refused(R"({"topology": 1})", "topology: expected an object"));
  CHECK(refused(R"({"topology": {}, "topology": {}})", ""));
  CHECK(refused(R"({"tables": []})", "tables: expected an object"));
  CHECK(refused(R"({"format": "other"})", "format: expected hearth-costs-1"));
  CHECK(refused(changed(R"("cores": 4)", R"("cores": 4e99)"), "topology: cores: expected a whole"));
  CHECK(refused(changed(R"("cores": 4)", R"("cores": 99999999999999999999)"), "topology: cores:"));
  CHECK(
      refused(changed(R"("cores": 4)", R"("cores": 5)"), "topology: cores: core_list has others"));
  CHECK(
      refused(changed(R"("root": "0000-16")", R"("root": "x")"), "topology: devices[0]: root: no"));
  CHECK(refused(changed(R"("links": [])", R"("links": {})"), "links: expected a list"));
  CHECK(refused(changed(R"("memory": )", R"("memory": -)"), "memory: expected a whole number"));
  CHECK(refused(std::string(17 << 20, ' '), ""));
  CHECK(one_line(w.run(w.words({"--machine", w.d / "m.json"})), 3, "describes a second machine"));
  CHECK(one_line(w.run(w.words({"--machine", w.d / "gpu.json", "--machine", w.d / "gpu.json"})), 3,
                 "a second table of 'virtual:0'"));
  CHECK(one_line(w.run(w.words({"--machine", w.d / "absent.json"})), 3, "absent.json"));
  CHECK(one_line(w.run(w.words({"--topology", w.d / "m.xml"})), 3, "describes a second machine"));
  CHECK(one_line(w.run(w.words({"--devices", "cuda:0"})), 2,
                 "m.json' does not say how much memory it has; give --gpu-memory"));
  CHECK(one_line(w.run(w.words({"--devices", "cuda:2"})), 2, "which has 2 accelerators"));
  std::vector<std::string> tables_alone = w.words({});
  *std::find(tables_alone.begin(), tables_alone.end(), w.d / "m.json") = w.d / "host.json";
  CHECK(one_line(w.run(tables_alone), 2, "tables alone do not describe a machine"));
}

namespace {

/// The server with two GPUs, of which one says how much memory it has.
struct FileWithGpus : Described {
  FileWithGpus() {
    FileMachine machine = server();
    std::string gpu = os_device(false, "cuda0", 5, "CUDA");
    gpu.insert(gpu.find("</object>"), R"(<info name="CUDAGlobalMemorySize" value="25165824"/>)");
    machine.bridges[0].devices[0].os_devices = {gpu};
    machine.bridges[1].devices[0].os_devices = {os_device(false, "cuda1", 5, "CUDA")};
    machine.bridges[1].devices[0].link_speed = "7.876923";
    write(d / "gpus.xml", machine_file(machine));
  }
  std::vector<std::string> words(const std::string& devices,
                                 const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = Described::words(with({"--devices", devices}, more));
    const auto file = std::find(words.begin(), words.end(), d / "m.json");
    *(file - 1) = "--topology";
    *file = d / "gpus.xml";
    return words;
  }
  Json plan(const std::string& devices, const std::vector<std::string>& more = {}) const {
    const ProgramResult r = run(words(devices, more));
    INFO(r.err);
    REQUIRE(r.exit_code == 0);
    return parse_json(r.out, "plan");
  }
};

}  // namespace

TEST_CASE("plan --topology: the GPUs of the file are planned, wherever that is") {
  const FileWithGpus w;
  const SetVariable rates("HEARTH_RATES", "");
  const Json one = w.plan("cuda:0");
  const Json& gpu = one.find("places")->as_array().back();
  CHECK(gpu.find("place")->as_string() == "cuda:0");
  CHECK(gpu.find("root")->as_string() == "0000-16");
  CHECK(gpu.find("h2d")->as_double() == 31507692000);
  const uint64_t memory = gpu.find("mem_bytes")->as_uint();  // less 5 %
  CHECK(memory < uint64_t{24} << 30);
  CHECK(memory > uint64_t{22} << 30);
  CHECK(one.find("workers")->as_int() == 4);
  CHECK(one.find("time_s")->is_null());

  const Json two = w.plan("cuda:0,cuda:1,host", {"--gpu-memory", "8Gi"});
  const JsonArray& places = two.find("places")->as_array();
  REQUIRE(places.size() == 4);
  CHECK(places[2].find("mem_bytes")->as_uint() == uint64_t{8} << 30);
  CHECK(places[3].find("root")->as_string() == "0000-97");
  CHECK(places[3].find("d2h")->as_double() == 7876923000);
  CHECK(two.find("stages")->as_array().size() == 2);

  // What is nowhere said is refused in a line that names the option.
  CHECK(one_line(w.run(w.words("cuda:1")), 2, "memory it has; give --gpu-memory"));
  CHECK(one_line(w.run(w.words("cuda:2")), 2, "cuda:2 is not in"));
  // A run does not take them.
  const ProgramResult run =
      w.run(w.train("run", {"--topology", w.d / "gpus.xml", "--devices", "cuda:1023"}));
  CHECK(one_line(run, 2, "cuda:1023"));
}

TEST_CASE("plan --topology: tables of the file's machine time its GPUs") {
  const FileWithGpus w;
  const SetVariable rates("HEARTH_RATES", "");
  make_directory(w.d / "tables");
  write(w.d / "tables/host.json", table("host", "1e-4"));
  write(w.d / "tables/host-1.json", table("host:1", "1e-4"));
  write(w.d / "tables/cuda-0.json", table("cuda:0", "1e-5"));
  const std::vector<std::string> given = {"--machine", w.d / "tables/host.json", "--machine",
                                          w.d / "tables/cuda-0.json"};
  const Json plan = w.plan("cuda:0,host", given);
  CHECK(plan.find("time_s")->as_double() > 0);
  const Json by_profile = w.plan("cuda:0,host", {"--profile", w.d / "tables"});
  CHECK(by_profile.find("time_s")->dump() == plan.find("time_s")->dump());
  const std::string text = plan.dump();
  const SetVariable isa("HEARTH_ISA", "avx2"), nodes("HEARTH_NODES", "1");
  CHECK(w.plan("cuda:0,host", given).dump() == text);
}

TEST_CASE("topology: a virtual device has the link of the accelerator in whose place it stands") {
  const FileWithGpus w;
  const auto rates = [&](const std::string& devices) {
    std::vector<double> all;
    const Json plan = w.plan(devices);
    for (const Json& place : plan.find("places")->as_array()) {
      if (!place.find("place")->as_string().starts_with("virtual")) continue;
      for (const char* way : {"h2d", "d2h"}) {
        const Json* rate = place.find(way);
        all.push_back(rate->is_null() ? 0 : rate->as_double());
      }
    }
    return all;
  };
  using Rates = std::vector<double>;
  CHECK(rates("2xvirtual") == Rates{31507692000, 31507692000, 7876923000, 7876923000});
  CHECK(rates("virtual:h2d=1G") == Rates{1e9, 31507692000});  // a key says more
  CHECK(rates("virtual:root=0000-16") == Rates{0, 0});        // stands in no place
  // A run has the same links: its plan is that of the file.
  const std::vector<std::string> more = {"--topology", w.d / "gpus.xml", "--devices", "virtual"};
  const ProgramResult planned = w.run(w.Workplace::plan(more));
  INFO(planned.err);
  REQUIRE(planned.exit_code == 0);
  write(w.d / "plan.json", planned.out);
  const ProgramResult r = w.run(w.train("run", with(more, {"--plan", w.d / "plan.json"})));
  INFO(r.err);
  CHECK(r.exit_code == 0);
}

namespace {

/// While it exists, this process and the programs that it starts may use one CPU.
class OneCpu {
 public:
  OneCpu() {
    REQUIRE(sched_getaffinity(0, sizeof before_, &before_) == 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(*allowed_cpus().begin()), &one);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  }
  ~OneCpu() { sched_setaffinity(0, sizeof before_, &before_); }
  OneCpu(const OneCpu&) = delete;
  OneCpu& operator=(const OneCpu&) = delete;

 private:
  cpu_set_t before_{};
};

/// A file of another machine, whose nodes have so much memory.
void write_machine(const std::string& path, uint64_t node_bytes) {
  std::string text = machine_file(server());
  const std::string from = std::to_string(kNodeBytes), to = std::to_string(node_bytes);
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  write(path, text);
}

/// The options of a command without the number of workers.
std::vector<std::string> without_threads(std::vector<std::string> words) {
  const auto threads = std::find(words.begin(), words.end(), "--threads");
  words.erase(threads, threads + 2);
  return words;
}

}  // namespace

TEST_CASE("train --topology: a run has the memory of this machine, whatever the file says") {
  const Workplace w;
  const uint64_t here = detect_topology().total_memory;
  for (const uint64_t node : {uint64_t{1} << 20, uint64_t{1} << 48}) {
    INFO(node);
    write_machine(w.d / "other.xml", node);
    const std::string out = "run" + std::to_string(node);
    const ProgramResult r =
        w.run(w.train(out, {"--topology", w.d / "other.xml", "--devices", "host"}));
    INFO(r.err);
    REQUIRE(r.exit_code == 0);
    const Json plan = parse_json(content(w.d / (out + "/plan.json")), "plan");
    const JsonArray& memory = plan.find("memory")->as_array();
    CHECK(memory[0].find("budget_bytes")->as_uint() == here);
  }
  // A plan is for the file's machine.
  const ProgramResult planned =
      w.run(w.plan({"--topology", w.d / "other.xml", "--devices", "host"}));
  REQUIRE(planned.exit_code == 0);
  const Json plan = parse_json(planned.out, "plan");
  CHECK(plan.find("memory")->as_array()[0].find("budget_bytes")->as_uint() == uint64_t{2} << 48);
  // The run of that plan has the memory of this machine all the same.
  write(w.d / "plan.json", planned.out);
  const ProgramResult r = w.run(w.train("planned", {"--topology", w.d / "other.xml", "--devices",
                                                    "host", "--plan", w.d / "plan.json"}));
  INFO(r.err);
  CHECK(r.exit_code == 0);
}

TEST_CASE("train --topology: the workers are those that this process may use") {
  const Workplace w;
  write_machine(w.d / "other.xml", kNodeBytes);  // four cores
  const OneCpu one;
  const auto workers = [&](const std::string& out, const std::string& devices) {
    const ProgramResult r = w.run(
        without_threads(w.train(out, {"--topology", w.d / "other.xml", "--devices", devices})));
    INFO(r.err);
    REQUIRE(r.exit_code == 0);
    if (devices.starts_with("host:")) {
      CHECK(r.err.find("2 NUMA nodes share 1 core: they wait for each other") != std::string::npos);
    }
    const Json plan = parse_json(content(w.d / (out + "/plan.json")), "plan");
    CHECK(plan.find("places")->as_array().size() == (devices == "host" ? 1 : 2));
    return plan.find("workers")->as_int();
  };
  CHECK(workers("all", "host") == 1);
  CHECK(workers("device", "virtual") == 1);
  CHECK(workers("named", "host:0,host:1") == 2);  // one for each node that the list names
}

TEST_CASE("plan --topology: of another machine, nothing of this one counts") {
  const Workplace w;
  write_machine(w.d / "other.xml", kNodeBytes);
  const SetVariable rates("HEARTH_RATES", "");
  for (const std::string devices : {"host", "virtual:mem=1Gi,host"}) {
    INFO(devices);
    std::vector<std::string> words = without_threads(
        w.train("unused", {"--topology", w.d / "other.xml", "--devices", devices, "--json"}));
    words[0] = "plan";
    const ProgramResult first = w.run(words);
    INFO(first.err);
    REQUIRE(first.exit_code == 0);
    const Json plan = parse_json(first.out, "plan");
    CHECK(plan.find("time_s")->as_double() > 0);
    CHECK(plan.find("workers")->as_int() == 4);
    const OneCpu one;
    const SetVariable isa("HEARTH_ISA", "avx2"), nodes("HEARTH_NODES", "1");
    CHECK(w.run(words).out == first.out);
    words.pop_back();
    CHECK(w.run(words).out.find("predicted from assumed rates") != std::string::npos);
  }
}

TEST_CASE("--plan: a run on another number of nodes is refused by the name of the place") {
  const Workplace w;
  write_machine(w.d / "other.xml", kNodeBytes);
  const ProgramResult two =
      w.run(without_threads(w.plan({"--topology", w.d / "other.xml", "--devices", "2xvirtual"})));
  INFO(two.err);
  REQUIRE(two.exit_code == 0);
  write(w.d / "plan.json", two.out);
  const SetVariable nodes("HEARTH_NODES", "1");
  const std::vector<std::string> words =
      without_threads(w.train("other", {"--devices", "2xvirtual", "--plan", w.d / "plan.json"}));
  const ProgramResult run = w.run(words);
  INFO(run.err);
  CHECK(one_line(run, 2, "places: the plan has 'host:1', this run would have 'no host:1'"));
}

TEST_CASE("plan --machine: a plan of this machine, described by itself, is run") {
  const Workplace w;
  const ProgramResult doctor = w.run({"doctor", "--json"});
  REQUIRE(doctor.exit_code == 0);
  write(w.d / "doctor.json", doctor.out);
  const ProgramResult profile = w.run(
      {"profile", "--model", w.d / "model", "--budget", "1s", "--out", w.d / "tables", "--json"});
  INFO(profile.err);
  REQUIRE(profile.exit_code == 0);
  write(w.d / "profile.json", profile.out);
  const ProgramResult printed = w.run(w.plan({"--machine", w.d / "doctor.json", "--machine",
                                              w.d / "profile.json", "--compute-dtype", "f32"}));
  INFO(printed.err);
  REQUIRE(printed.exit_code == 0);
  CHECK(parse_json(printed.out, "plan").find("time_s")->as_double() > 0);
  write(w.d / "plan.json", printed.out);
  const ProgramResult r = w.run(w.train("run", {"--plan", w.d / "plan.json"}));
  INFO(r.err);
  CHECK(r.exit_code == 0);
}
