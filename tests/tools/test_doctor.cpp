// hearth doctor, as a user runs it.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <fstream>

#include "base/json.h"
#include "base/sanitized.h"
#include "base/stopwatch.h"
#include "support/has.h"
#include "support/machine_file.h"
#include "support/program.h"
#include "support/test_paths.h"

using namespace hearth;
using namespace hearth::test;

namespace {

ProgramResult doctor(std::vector<std::string> words) {
  words.insert(words.begin(), "doctor");
  return run_program(test_binary(), words);
}

Json document(const ProgramResult& r) {
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  return parse_json(r.out, "stdout");
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

const Json& at(const Json& json, std::initializer_list<std::string_view> path) {
  const Json* here = &json;
  for (const std::string_view key : path) {
    here = here->find(key);
    REQUIRE(here != nullptr);
  }
  return *here;
}

}  // namespace

TEST_CASE("doctor describes this machine and measures its links") {
  const Stopwatch watch;
  const Json json = document(doctor({"--json", "--devices", "virtual:h2d=20M/d2h=10M"}));
  CHECK(watch.seconds() < 40);  // 20 on a machine that does nothing else
  CHECK(at(json, {"topology", "source"}).as_string() == "machine");
  CHECK(at(json, {"topology", "cores"}).as_int() >= 1);
  CHECK(at(json, {"topology", "cpus"}).as_int() >= at(json, {"topology", "cores"}).as_int());
  CHECK_FALSE(at(json, {"isa"}).as_string().empty());
  CHECK(at(json, {"memory"}).as_int() > 1 << 26);
  CHECK(at(json, {"limits", "huge_pages"}).is_array());
  const JsonArray& links = at(json, {"links"}).as_array();
  REQUIRE(links.size() >= 3);
  CHECK(at(links[0], {"link"}).as_string() == "host->virtual:0");
  CHECK(at(links[0], {"bytes_per_s"}).as_int() == 20'000'000);
  CHECK(at(links[1], {"link"}).as_string() == "virtual:0->host");
  CHECK(at(links[1], {"bytes_per_s"}).as_int() == 10'000'000);
  for (const Json& link : links) {
    CHECK(at(link, {"alone"}).as_int() > 0);
    CHECK(at(link, {"together"}).as_int() > 0);
  }
  CHECK(at(links[0], {"alone"}).as_int() < 21'000'000);

  const ProgramResult text = doctor({});
  CHECK(text.exit_code == 0);
  CHECK(text.err.empty());
  for (const std::string part :
       {"machine       this one\n", "NUMA nodes\n", "MPI  ", "NCCL  ", "warnings\n", "  host"}) {
    CAPTURE(part);
    CHECK(text.out.find(part) != std::string::npos);
  }
}

TEST_CASE("doctor stays within its time and its memory, whatever the devices") {
  for (const char* list :
       {"auto", "virtual:h2d=1", "2xvirtual:latency=60", "2xvirtual:d2h=100k", "64xvirtual"}) {
    INFO(list);
    const Stopwatch watch;
    const ProgramResult r = doctor({"--json", "--devices", list});
    CHECK(watch.seconds() < 40);  // 20 on a machine that does nothing else
    if (!kSanitized) CHECK(r.peak_bytes < uint64_t{512} << 20);
    CHECK(document(r).is_object());
    const bool slow = has(list, "h2d=1") || has(list, "latency");
    // On a busy machine there may be no time for other links, either.
    if (slow) CHECK(has(r.out, "not measured: a copy would take longer"));
  }
}

TEST_CASE("doctor sees the nodes that a test asks for") {
  const int cores =
      static_cast<int>(at(document(doctor({"--json"})), {"topology", "cores"}).as_int());
  setenv("HEARTH_NODES", std::to_string(cores).c_str(), 1);
  const Json json = document(doctor({"--json"}));
  setenv("HEARTH_NODES", "many", 1);
  const ProgramResult refused = doctor({"--json"});
  unsetenv("HEARTH_NODES");
  CHECK(at(json, {"topology", "nodes"}).as_array().size() == static_cast<size_t>(cores));
  CHECK(at(json, {"topology", "packages"}).as_array().size() == static_cast<size_t>(cores));
  const JsonArray& links = at(json, {"links"}).as_array();
  const auto has_link = [&](const std::string& name) {
    return std::ranges::any_of(
        links, [&](const Json& link) { return at(link, {"link"}).as_string() == name; });
  };
  if (cores > 1) CHECK(links.size() >= static_cast<size_t>(cores) * static_cast<size_t>(cores));
  CHECK(has_link(cores > 1 ? "host:0->host:1" : "host->host"));
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("HEARTH_NODES: 'many'") != std::string::npos);
}

TEST_CASE("doctor describes another machine from a file") {
  const TemporaryDirectory d;
  FileMachine m{.packages = 4};
  m.bridges = {{1, "0000:[16-2a]", {{"0000:17:00.0"}}}};
  write_text(d / "m.xml", machine_file(m));
  const Json json = document(doctor({"--topology", d / "m.xml", "--json"}));
  CHECK(at(json, {"topology", "source"}).as_string() == d / "m.xml");
  CHECK(at(json, {"topology", "packages"}).as_array().size() == 4);
  CHECK(at(at(json, {"topology", "devices"}).as_array()[0], {"root"}).as_string() == "0000-16");
  CHECK(at(json, {"links"}).as_array().empty());
  CHECK(at(json, {"isa"}).is_null());
  const ProgramResult text = doctor({"--topology", d / "m.xml"});
  CHECK(text.out.find("machine       " + d / "m.xml") != std::string::npos);
  CHECK(text.out.find("links, in") == std::string::npos);
}

TEST_CASE("doctor refuses what is missing or cannot be read") {
  const TemporaryDirectory d;
  const auto refused = [](const ProgramResult& r, int code, const std::string& part) {
    INFO(r.err);
    CHECK(r.exit_code == code);
    CHECK(r.out.empty());
    CHECK(r.err.starts_with("hearth: "));
    CHECK(r.err.find('\n') == r.err.size() - 1);
    CHECK(r.err.find(part) != std::string::npos);
    if (!kSanitized) CHECK(r.peak_bytes < uint64_t{512} << 20);
  };
  refused(doctor({"--devices", "cuda:77"}), 2, "--devices cuda");
  refused(doctor({"--devices", "host:999"}), 2, "host:999");
  refused(doctor({"--devices", "tpu"}), 2, "--devices");
  refused(doctor({"--topology", d / "none.xml"}), 3, "none.xml");
  refused(doctor({"--topology", d.path()}), 3, "");
  refused(doctor({"--topology", d / "none.xml", "--devices", "virtual"}), 2, "--devices");

  const std::string path = d / "bad.xml";
  const auto refuses = [&](const std::string& text) {
    write_text(path, text);
    const Stopwatch watch;
    refused(doctor({"--topology", path}), 3, path);
    CHECK(watch.seconds() < 30);
  };
  refuses("");
  refuses("not XML");
  refuses(machine_file({}).substr(0, 1000));
  refuses("<topology version=\"2.0\"></topology>");
  std::string bomb = "<!DOCTYPE topology [<!ENTITY a \"aaaaaaaaaa\">";
  for (char c = 'b'; c < 'k'; ++c) {
    bomb += std::string("<!ENTITY ") + c + " \"";
    for (int i = 0; i < 10; ++i) bomb += std::string("&") + static_cast<char>(c - 1) + ";";
    bomb += "\">";
  }
  refuses(bomb + "]><topology>&j;</topology>");
  refuses(
      "<!DOCTYPE topology SYSTEM \"x\" [<!ENTITY a SYSTEM "
      "\"/etc/passwd\">]><topology>&a;</topology>");
  std::string deep = "<topology version=\"2.0\">";
  for (int i = 0; i < 500'000; ++i) deep += "<object type=\"Group\" cpuset=\"0x1\">";
  refuses(deep);
  std::string wide = "<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"0x1\">";
  for (int i = 0; i < 1'000'000; ++i) wide += "<object type=\"PU\" os_index=\"7\"/>";
  refuses(wide);
  std::string set = "<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"0x1";
  for (int i = 0; i < 2'000'000; ++i) set += ",0xffffffff";
  refuses(set + "\"/></topology>");
  std::string large = machine_file({});
  large.insert(large.find("<info"), std::string(65 << 20, ' '));
  refuses(large);
}
