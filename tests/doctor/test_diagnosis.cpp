#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "doctor/diagnosis_json.h"
#include "doctor/diagnosis_text.h"
#include "support/has.h"
#include "support/machine_file.h"
#include "topology/hwloc_xml.h"

using namespace hearth;
using namespace hearth::test;

namespace {

FileMachine machine_with_gpus() {
  FileMachine m;
  m.bridges = {{0,
                "0000:[16-2a]",
                {{"0000:17:00.0", "0302", "31.507692", {os_device(false, "cuda0", 5, "CUDA")}},
                 {"0000:18:00.0", "0302", "15.753846"}}},
               {1, "0000:[97-9b]", {{"0000:98:00.0", "0302", "15.753845"}}},
               {-1, "0000:[e0-ff]", {{"0000:e1:00.0", "0200", ""}, {"0000:e2:00.0", "0200", "0"}}}};
  return m;
}

std::vector<std::string> about(const Diagnosis& d) {
  std::vector<std::string> subjects;
  for (const Warning& w : d.warnings) subjects.push_back(w.about);
  return subjects;
}

// As the library writes it.
std::string same(const std::string& text) { return parse_json(text, "expected").dump(); }

const Json& at(const Json& json, std::initializer_list<std::string_view> path) {
  const Json* here = &json;
  for (const std::string_view key : path) {
    here = here->find(key);
    REQUIRE(here != nullptr);
  }
  return *here;
}

}  // namespace

TEST_CASE("a file about a machine is described, and nothing is measured") {
  const Diagnosis d = diagnose(parse_topology(machine_file(machine_with_gpus()), "a.xml"), {});
  CHECK(about(d) == std::vector<std::string>{"0000:98:00.0"});  // 15.753846 is half
  const Json json = diagnosis_json(d);
  CHECK(
      json.dump() ==
      same(
          R"({"topology":{"source":"a.xml",)"
          R"("packages":[{"index":0,"model":"Model \"X\" @ 2.0GHz","cores":2},)"
          R"({"index":1,"model":"Model \"X\" @ 2.0GHz","cores":2}],)"
          R"("nodes":[{"number":0,"memory_bytes":68719476736,"package":0,"cores":2},)"
          R"({"number":1,"memory_bytes":68719476736,"package":1,"cores":2}],"cores":4,"cpus":8,)"
          R"("core_list":[{"package":0,"node":0,"cpus":[0,1]},{"package":0,"node":0,"cpus":[2,3]},)"
          R"({"package":1,"node":1,"cpus":[4,5]},{"package":1,"node":1,"cpus":[6,7]}],)"
          R"("root_complexes":[{"name":"0000-16","package":0,"nodes":[0]},)"
          R"({"name":"0000-97","package":1,"nodes":[1]},)"
          R"({"name":"0000-e0","package":null,"nodes":[0,1]}],)"
          R"("devices":[{"pci":"0000:17:00.0","class":"0302","vendor":"10de","root":"0000-16",)"
          R"("package":0,"nodes":[0],"link_bytes_per_s":31507692000,"names":["cuda0"]},)"
          R"({"pci":"0000:18:00.0","class":"0302","vendor":"10de","root":"0000-16","package":0,)"
          R"("nodes":[0],"link_bytes_per_s":15753846000,"names":[]},)"
          R"({"pci":"0000:98:00.0","class":"0302","vendor":"10de","root":"0000-97","package":1,)"
          R"("nodes":[1],"link_bytes_per_s":15753845000,"names":[]}],)"
          R"("nics":[{"pci":"0000:e1:00.0","class":"0200","vendor":"10de","root":"0000-e0",)"
          R"("package":null,"nodes":[0,1],"link_bytes_per_s":null,"names":[]},)"
          R"({"pci":"0000:e2:00.0","class":"0200","vendor":"10de","root":"0000-e0","package":null,)"
          R"("nodes":[0,1],"link_bytes_per_s":null,"names":[]}]},)"
          R"("isa":null,"memory":137438953472,"links":[],"limits":null,"mpi":null,"nccl":null,)"
          R"("warnings":[{"about":"0000:98:00.0","text":"its link has 15.8 GB/s, less than half of )"
          R"(the fastest accelerator (31.5 GB/s); check slot and riser"}]})"));

  const std::string text = diagnosis_text(d);
  for (const std::string part :
       {"machine       a.xml\n", "cores         4 cores, 8 logical CPUs\n",
        "memory        137.4 GB\n", "  0           2 cores  Model \"X\" @ 2.0GHz\n",
        "  1           68.72 GB  2 cores  package 1\n",
        "  0000-e0     several packages  nodes 0 1\n",
        "  0000:17:00.0  class 0302  root complex 0000-16   node 0  link 31.5 GB/s  cuda0  vendor "
        "10de\n",
        "  0000:e1:00.0  class 0200  root complex 0000-e0   nodes 0 1  link unknown  vendor 10de\n",
        "warnings\n  0000:98:00.0: its link has 15.8 GB/s"}) {
    CAPTURE(text, part);
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(text.find("MPI") == std::string::npos);
}

TEST_CASE("what a machine itself tells is written, too") {
  MachineFindings found;
  found.isa = "avx2";
  found.links = {{"host->cuda:0", 31.5e9, 25e9, 22e9},
                 {"cuda:0->host", 31.5e9, 20.9e9, 18e9},
                 {"host->host", 0, 12e9, 12e9}};
  found.limits.locked_memory = 65536;
  found.limits.open_files = 1024;
  found.limits.huge_pages = {{2097152, 10, 4}};
  found.limits.transparent_huge_pages = "never";
  found.nccl = FoundLibrary{"libnccl.so.2", "2.23.4"};
  found.pci_links = {{"0000:17:00.0", {8, 16, 16e9}}, {"0000:18:00.0", {16, 16, 16e9}}};
  found.warnings = {{"cuda", "a note"}};
  FileMachine m = machine_with_gpus();
  m.no_memory = {1};
  const Diagnosis d = diagnose(parse_topology(machine_file(m), "machine"), found);
  CHECK(about(d) == std::vector<std::string>{"cuda", "0000:98:00.0", "0000:17:00.0", "cuda:0->host",
                                             "host:1", "locked_memory", "transparent_huge_pages"});
  const Json json = diagnosis_json(d);
  CHECK(at(json, {"isa"}).as_string() == "avx2");
  CHECK(
      at(json, {"links"}).dump() ==
      same(R"([{"link":"host->cuda:0","bytes_per_s":31500000000,"alone":25000000000,)"
           R"("together":22000000000},{"link":"cuda:0->host","bytes_per_s":31500000000,)"
           R"("alone":20900000000,"together":18000000000},{"link":"host->host","bytes_per_s":null,)"
           R"("alone":12000000000,"together":12000000000}])"));
  CHECK(at(json, {"limits"}).dump() ==
        same(R"({"locked_memory_bytes":65536,"address_space_bytes":null,"open_files":1024,)"
             R"("huge_pages":[{"bytes":2097152,"total":10,"free":4}],)"
             R"("transparent_huge_pages":"never"})"));
  std::string printed = diagnosis_text(d);
  for (const std::string part :
       {"link 31.5 GB/s (x8 of x16, PCIe 4)  cuda0", "link 15.8 GB/s (x16, PCIe 4)"}) {
    CAPTURE(printed, part);
    CHECK(printed.find(part) != std::string::npos);
  }
  CHECK(printed.find("distances") == std::string::npos);  // the file has none
  Diagnosis far = d;
  far.topology.distances = {{10, 21}, {21, 10}};
  printed = diagnosis_text(far);
  CAPTURE(printed);
  CHECK(printed.find("\ndistances          0     1\n  0               10    21\n"
                     "  1               21    10\n") != std::string::npos);
  CHECK(at(json, {"mpi"}).is_null());
  CHECK(at(json, {"nccl"}).dump() == same(R"({"library":"libnccl.so.2","version":"2.23.4"})"));
  const std::string text = diagnosis_text(d);
  for (const std::string part :
       {"machine       this one\n", "ISA           avx2\n",
        "links, in GB/s             nominal     alone  together\n",
        "  host->cuda:0                31.5      25.0      22.0\n",
        "  host->host                     ?      12.0      12.0\n", "  locked memory   65.54 kB\n",
        "  huge pages      4 of 10 free, of 2048 KiB\n", "MPI           not found\n",
        "NCCL          libnccl.so.2: 2.23.4\n", "  0000:17:00.0: its link has 8 of 16 lanes",
        "  cuda:0->host: reaches 20.9 of 31.5 GB/s\n", "  host:1: has cores and no memory"}) {
    CAPTURE(text, part);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("slow links are told in a unit that shows them, and unmeasured links as such") {
  MachineFindings found;
  found.limits.transparent_huge_pages = "madvise";
  found.links = {
      {"a", 0.11e9, 0.06e9}, {"b", 400e3, 100}, {"c", 0, 0, 0, true}, {"d", 5e9, 5e9, 0, true}};
  const std::string text =
      diagnosis_text(diagnose(parse_topology(machine_file({}), "machine"), found));
  INFO(text);
  const std::string not_measured =
      ": a copy would take longer than the time that the command has left\n";
  CHECK(has(text, "  a: reaches 60.0 of 110.0 MB/s\n"));
  CHECK(has(text, "  b: reaches 0.1 of 400.0 kB/s\n"));
  CHECK(has(text, "  c: not measured" + not_measured));
  CHECK(has(text, "  d: not measured together" + not_measured));
  CHECK_FALSE(has(text, "c: reaches"));
  CHECK(has(text, "  b                         0.0004     1e-07         ?\n"));
}

TEST_CASE("a machine without fault has no warnings") {
  MachineFindings found;
  found.links = {{"host->cuda:0", 31.5e9, 21.1e9, 10e9}};  // two thirds are 21
  found.limits.transparent_huge_pages = "madvise";
  const Diagnosis d =
      diagnose(parse_topology(machine_file({.fast_nodes = true}), "machine"), found);
  CHECK(d.warnings.empty());
  CHECK(diagnosis_text(d).find("warnings\n  none\n") != std::string::npos);
}

TEST_CASE("control characters of a file do not reach the terminal") {
  FileMachine m = machine_with_gpus();
  m.bridges[0].devices[0].os_devices = {os_device(false, "cu&#27;[2Jda", 5)};
  const Diagnosis d = diagnose(parse_topology(machine_file(m), "a\x1B.xml"), {});
  CHECK(diagnosis_text(d).find('\x1B') == std::string::npos);
}
