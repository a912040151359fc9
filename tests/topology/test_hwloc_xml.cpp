#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>

#include "base/error.h"
#include "support/machine_file.h"
#include "support/raises.h"
#include "support/temporary_directory.h"
#include "topology/hwloc_xml.h"

using namespace hearth;
using namespace hearth::test;

namespace {

std::vector<int> cores_by_node(const Topology& t) {
  std::vector<int> cores;
  for (const NumaNode& node : t.nodes) {
    cores.push_back(
        static_cast<int>(std::count_if(t.cores.begin(), t.cores.end(), [&](const TopologyCore& c) {
          return c.node == node.number;
        })));
  }
  return cores;
}

std::vector<int> numbers_of(const std::vector<NumaNode>& nodes) {
  std::vector<int> numbers;
  for (const NumaNode& node : nodes) numbers.push_back(node.number);
  return numbers;
}

/// What hwloc's own reader makes of a file.
class ByHwloc {
 public:
  explicit ByHwloc(const std::string& text) {
    REQUIRE(hwloc_topology_init(&topology_) == 0);
    REQUIRE(hwloc_topology_set_xmlbuffer(topology_, text.c_str(),
                                         static_cast<int>(text.size()) + 1) == 0);
    REQUIRE(hwloc_topology_set_io_types_filter(topology_, HWLOC_TYPE_FILTER_KEEP_ALL) == 0);
    REQUIRE(hwloc_topology_load(topology_) == 0);
  }
  ~ByHwloc() { hwloc_topology_destroy(topology_); }

  static bool reads(const std::string& text) {
    hwloc_topology_t topology = nullptr;
    REQUIRE(hwloc_topology_init(&topology) == 0);
    const bool read = hwloc_topology_set_xmlbuffer(topology, text.c_str(),
                                                   static_cast<int>(text.size()) + 1) == 0 &&
                      hwloc_topology_load(topology) == 0;
    hwloc_topology_destroy(topology);
    return read;
  }

  int count(hwloc_obj_type_t type) const { return hwloc_get_nbobjs_by_type(topology_, type); }

  // By the rule: the fewest CPUs around, of equals the lowest number.
  std::map<int, int> cores_by_node() const {
    std::map<int, int> cores;
    for (hwloc_obj_t n = nullptr; (n = next(HWLOC_OBJ_NUMANODE, n));) {
      cores[static_cast<int>(n->os_index)] = 0;
    }
    for (hwloc_obj_t core = nullptr; (core = next(HWLOC_OBJ_CORE, core));) {
      hwloc_obj_t best = nullptr;
      for (hwloc_obj_t n = nullptr; (n = next(HWLOC_OBJ_NUMANODE, n));) {
        if (!hwloc_bitmap_isincluded(core->cpuset, n->cpuset)) continue;
        const auto key = [](hwloc_obj_t o) {
          return std::pair(hwloc_bitmap_weight(o->cpuset), o->os_index);
        };
        if (best == nullptr || key(n) < key(best)) best = n;
      }
      if (best != nullptr) ++cores[static_cast<int>(best->os_index)];
    }
    return cores;
  }

  /// Packages of the host bridges, by name; -1: none.
  std::map<std::string, int> roots() const {
    std::map<std::string, int> roots;
    for (hwloc_obj_t b = nullptr; (b = next(HWLOC_OBJ_BRIDGE, b));) {
      if (b->attr->bridge.upstream_type != HWLOC_OBJ_BRIDGE_HOST) continue;
      const hwloc_obj_t above = hwloc_get_non_io_ancestor_obj(topology_, b);
      int package = -1;
      if (hwloc_get_nbobjs_inside_cpuset_by_type(topology_, above->cpuset, HWLOC_OBJ_PACKAGE) ==
          1) {
        package = static_cast<int>(
            hwloc_get_obj_inside_cpuset_by_type(topology_, above->cpuset, HWLOC_OBJ_PACKAGE, 0)
                ->logical_index);
      }
      roots[fmt::format("{:04x}-{:02x}", b->attr->bridge.downstream.pci.domain,
                        b->attr->bridge.downstream.pci.secondary_bus)] = package;
    }
    return roots;
  }

 private:
  hwloc_obj_t next(hwloc_obj_type_t type, hwloc_obj_t before) const {
    return hwloc_get_next_obj_by_type(topology_, type, before);
  }

  hwloc_topology_t topology_ = nullptr;
};

FileMachine with_gpus(FileMachine m) {
  m.bridges = {{0,
                "0000:[00-15]",
                {{"0000:01:00.0", "0200", "3.938462", {os_device(m.version_1, "eth0", 2)}}}},
               {0,
                "0000:[16-2a]",
                {{"0000:17:00.0",
                  "0302",
                  "31.507692",
                  {os_device(m.version_1, "cuda0", 5, "CUDA"),
                   os_device(m.version_1, "nvml0", 1, "NVML")}}}},
               {m.packages - 1, "0000:[97-9b]", {{"0000:98:00.0", "0302", "15.753846", {}}}},
               {-1, "0001:[e0-ff]", {{"0001:e1:00.0", "1200", "", {}}}}};
  return m;
}

}  // namespace

TEST_CASE("machines of one to eight packages are read as hwloc reads them") {
  for (const bool version_1 : {false, true}) {
    for (const int packages : {1, 2, 4, 8}) {
      for (const bool pci : {false, true}) {
        CAPTURE(version_1, packages, pci);
        FileMachine m{.version_1 = version_1, .packages = packages};
        if (pci) m = with_gpus(m);
        const std::string text = machine_file(m);
        const Topology t = parse_topology(text, "file");
        CHECK(t.source == "file");
        CHECK_FALSE(t.has_real_nodes);
        CHECK(t.cpu_model == "Model \"X\" @ 2.0GHz");
        CHECK(t.packages.size() == static_cast<size_t>(packages));
        CHECK(t.nodes.size() == static_cast<size_t>(packages));
        CHECK(t.cores.size() == static_cast<size_t>(2 * packages));
        CHECK(t.cpus() == 4 * packages);
        CHECK(t.total_memory == kNodeBytes * static_cast<uint64_t>(packages));
        CHECK(t.nodes.back().package == packages - 1);
        CHECK(t.cores.back().package == packages - 1);
        CHECK(t.cores.back().node == packages - 1);
        CHECK(t.cores.back().cpus == std::vector<int>{4 * packages - 2, 4 * packages - 1});
        CHECK(t.worker_cpus_of_node(packages - 1) ==
              std::vector<int>{4 * packages - 4, 4 * packages - 2});
        CHECK(t.roots.size() == (pci ? 4 : 0));
        CHECK(t.accelerators.size() == (pci ? 3 : 0));

        const ByHwloc hwloc(text);
        CHECK(hwloc.count(HWLOC_OBJ_PACKAGE) == packages);
        CHECK(hwloc.count(HWLOC_OBJ_CORE) == 2 * packages);
        CHECK(hwloc.count(HWLOC_OBJ_NUMANODE) == packages);
        CHECK(hwloc.count(HWLOC_OBJ_PU) == t.cpus());
        std::map<int, int> cores;
        for (size_t i = 0; i < t.nodes.size(); ++i) cores[t.nodes[i].number] = cores_by_node(t)[i];
        CHECK(hwloc.cores_by_node() == cores);
        std::map<std::string, int> roots;
        for (const TopologyRoot& root : t.roots) roots[root.name] = root.package.value_or(-1);
        CHECK(hwloc.roots() == roots);
      }
    }
  }
}

TEST_CASE("accelerators and NICs stand below their root complexes") {
  for (const bool version_1 : {false, true}) {
    CAPTURE(version_1);
    const Topology t = parse_topology(machine_file(with_gpus({.version_1 = version_1})), "file");
    REQUIRE(t.roots.size() == 4);
    CHECK(t.roots[0].name == "0000-00");
    CHECK(t.roots[1].name == "0000-16");
    CHECK(t.roots[1].package == 0);
    CHECK(t.roots[1].nodes == std::vector<int>{0});
    CHECK(t.roots[2].name == "0000-97");
    CHECK(t.roots[2].package == 1);
    CHECK(t.roots[2].nodes == std::vector<int>{1});
    CHECK(t.roots[3].name == "0001-e0");
    CHECK_FALSE(t.roots[3].package.has_value());
    CHECK(t.roots[3].nodes == std::vector<int>{0, 1});

    REQUIRE(t.accelerators.size() == 3);
    const PciDevice& first = t.accelerators[0];
    CHECK(first.address == "0000:17:00.0");
    CHECK(first.class_code == "0302");
    CHECK(first.vendor == "10de");
    CHECK(first.root == "0000-16");
    CHECK(first.package == 0);
    CHECK(first.nodes == std::vector<int>{0});
    CHECK(first.link_bytes_per_s == 31.507692e9);
    CHECK(first.names == std::vector<std::string>{"cuda0", "nvml0"});
    CHECK(t.accelerators[1].root == "0000-97");
    const PciDevice& last = t.accelerators[2];
    CHECK(last.root == "0001-e0");
    CHECK(last.class_code == "1200");
    CHECK_FALSE(last.package.has_value());
    CHECK(last.nodes == std::vector<int>{0, 1});
    CHECK(last.link_bytes_per_s == 0);
    REQUIRE(t.nics.size() == 1);
    CHECK(t.nics[0].address == "0000:01:00.0");
    CHECK(t.nics[0].names == std::vector<std::string>{"eth0"});

    CHECK(t.accelerator(1) == &t.accelerators[1]);
    CHECK(t.accelerator(3) == nullptr);
    CHECK(t.find_device("00000000:17:00.0") == &t.accelerators[0]);
    CHECK(t.find_device("0001:E1:00.0") == &t.accelerators[2]);
    CHECK(t.find_device("01:00.0") == &t.nics[0]);
    CHECK(t.find_device("0000:17:00.1") == nullptr);
    CHECK(t.find_device("gpu") == nullptr);
    CHECK(t.worker_cpus_near_root("0000-16") == std::vector<int>{0, 2});
    CHECK(t.worker_cpus_near_root("0000-97") == std::vector<int>{4, 6});
    CHECK(t.worker_cpus_near_root("0001-e0") == std::vector<int>{0, 2, 4, 6});
    CHECK(t.worker_cpus_near_root("none") == std::vector<int>{0, 2, 4, 6});
  }
}

TEST_CASE("an accelerator is what computes") {
  const auto kind = [](const std::string& class_code, const std::string& inside) {
    FileMachine m{.packages = 1};
    m.bridges = {{0, "0000:[00-ff]", {{"0000:01:00.0", class_code, "", {inside}}}}};
    const Topology t = parse_topology(machine_file(m), "file");
    return t.accelerators.empty() ? t.nics.empty() ? "none" : "nic" : "accelerator";
  };
  const std::string nothing = os_device(false, "card0", 1);
  for (const std::string code : {"0302", "0b40", "1200", "1280"}) {
    CHECK(kind(code, nothing) == std::string("accelerator"));
  }
  for (const std::string code : {"0300", "0380", "0b30", "0108", "1100"}) {
    CHECK(kind(code, nothing) == std::string("none"));
  }
  for (const std::string code : {"0200", "0207", "0280"}) {
    CHECK(kind(code, nothing) == std::string("nic"));
  }
  for (const std::string interface : {"CUDA", "OpenCL", "NVML", "RSMI", "LevelZero"}) {
    CHECK(kind("0300", os_device(false, "x", 5, interface)) == std::string("accelerator"));
    CHECK(kind("0380", os_device(true, "x", 5, interface)) == std::string("accelerator"));
    CHECK(kind("0100", os_device(false, "x", 5, interface)) == std::string("none"));
  }
  CHECK(kind("0300", os_device(false, "opencl0d0", 5)) == std::string("accelerator"));
  CHECK(kind("0300", os_device(false, ":0.0", 1, "Display")) == std::string("none"));
  CHECK(kind("ff00", os_device(false, "ib0", 3)) == std::string("nic"));
}

TEST_CASE("the memory of an accelerator is what its compute interface says, in KiB") {
  const auto memory = [](const std::string& value) {
    std::string gpu = os_device(false, "cuda0", 5, "CUDA");
    const std::string info = "<info name=\"CUDAGlobalMemorySize\" value=\"" + value + "\"/>";
    gpu.insert(gpu.find("</object>"), info);
    FileMachine m;
    m.bridges = {{0, "0000:[10-1f]", {{"0000:11:00.0", "0302", "", {gpu}}}}};
    return parse_topology(machine_file(m), "file").accelerators.front().memory;
  };
  CHECK(memory("83886080") == uint64_t{80} << 30);
  CHECK(memory("0") == 0);
  for (const char* no_size : {"much", "-1", "99999999999999"}) {
    const Raised raised = raised_by([&] { memory(no_size); });
    CHECK(raised.code == ExitCode::input);
    CHECK(raised.says("CUDAGlobalMemorySize '" + std::string(no_size) + "'"));
  }
}

TEST_CASE("a graphics card is an accelerator once something computes with it") {
  FileMachine m;
  m.bridges = {{0, "0000:[10-1f]", {{"0000:11:00.0", "0302"}, {"0000:13:00.0", "0302"}}},
               {1, "0000:[20-2f]", {{"0000:12:00.0", "0300"}, {"0000:01:00.0", "0300"}}}};
  Topology t = parse_topology(machine_file(m), "file");
  REQUIRE(t.graphics.size() == 2);
  CHECK(t.find_device("12:00.0")->root == "0000-20");
  t.add_accelerator("00000000:12:00.0", "cuda0");
  t.add_accelerator("0000:11:00.0", "cuda1");  // known already
  t.add_accelerator("nonsense", "cuda2");
  REQUIRE(t.accelerators.size() == 3);
  CHECK(t.accelerators[1].address == "0000:12:00.0");
  CHECK(t.accelerators[1].names == std::vector<std::string>{"cuda0"});
  CHECK(t.accelerators[0].names.empty());
  CHECK(t.graphics.size() == 1);
}

TEST_CASE("memory beside the cores' own has no cores") {
  for (const bool version_1 : {false, true}) {
    CAPTURE(version_1);
    const std::string text =
        machine_file({.version_1 = version_1, .fast_nodes = true, .far_node = true});
    const Topology t = parse_topology(text, "file");
    CHECK(numbers_of(t.nodes) == std::vector<int>{0, 1, 2, 3, 4});
    CHECK(cores_by_node(t) == std::vector<int>{2, 2, 0, 0, 0});
    CHECK(t.find_node(2)->memory == kFastBytes);
    CHECK(t.find_node(4)->memory == kFarBytes);
    CHECK_FALSE(t.find_node(4)->package.has_value());
    CHECK(t.find_node(5) == nullptr);
    CHECK(t.total_memory == 2 * kNodeBytes + 2 * kFastBytes + kFarBytes);
    if (version_1) continue;
    CHECK(t.find_node(3)->package == 1);
    const ByHwloc hwloc(text);
    CHECK(hwloc.cores_by_node() == std::map<int, int>{{0, 2}, {1, 2}, {2, 0}, {3, 0}, {4, 0}});
  }
}

TEST_CASE("cores without memory") {
  // A node without memory is a node.
  Topology t = parse_topology(machine_file({.no_memory = {1}}), "file");
  CHECK(cores_by_node(t) == std::vector<int>{2, 2});
  CHECK(t.find_node(1)->memory == 0);
  // No node around the cores.
  t = parse_topology(machine_file({.no_node = {1}}), "file");
  CHECK(numbers_of(t.nodes) == std::vector<int>{0});
  CHECK(cores_by_node(t) == std::vector<int>{2});
  CHECK(t.cores.size() == 4);
  CHECK(t.cores.back().node == -1);
  CHECK(t.packages.size() == 2);
  CHECK(t.worker_cpus_of_node(0) == std::vector<int>{0, 2, 4, 6});  // where their memory comes from
}

TEST_CASE("without NUMA there is one node") {
  const std::string text = machine_file({.version_1 = true, .nodes = false});
  const Topology t = parse_topology(text, "file");
  CHECK(numbers_of(t.nodes) == std::vector<int>{0});
  CHECK(cores_by_node(t) == std::vector<int>{4});
  CHECK_FALSE(t.nodes[0].package.has_value());
  CHECK(t.nodes[0].memory == kNodeBytes);
  CHECK(ByHwloc(text).cores_by_node() == std::map<int, int>{{0, 4}});
  // Version 2 always has a node.
  CHECK(raised_by([] { parse_topology(machine_file({.nodes = false}), "file"); }).says("no NUMA"));
}

TEST_CASE("only what may be used counts") {
  for (const bool version_1 : {false, true}) {
    CAPTURE(version_1);
    // CPUs 0-3 are package 0, 4-7 package 1; cores are pairs.
    Topology t =
        parse_topology(machine_file({.version_1 = version_1, .offline = {0, 1, 3}}), "file");
    CHECK(t.cpus() == 5);
    CHECK(cores_by_node(t) == std::vector<int>{1, 2});
    CHECK(t.cores.front().cpus == std::vector<int>{2});

    FileMachine limited{.version_1 = version_1, .disallowed = {0, 1, 2, 3}};
    t = parse_topology(machine_file(limited), "file");
    CHECK(cores_by_node(t) == std::vector<int>{0, 2});
    CHECK(t.packages.size() == 2);  // for its node
    CHECK(t.cores.size() == 2);
    CHECK(t.cpus() == 4);
    CHECK(t.cores.front().package == 1);

    limited.disallowed_nodes = {0};
    t = parse_topology(machine_file(with_gpus(limited)), "file");
    CHECK(numbers_of(t.nodes) == std::vector<int>{1});
    REQUIRE(t.packages.size() == 1);
    CHECK(t.packages[0].index == 1);
    CHECK(t.find_root("0000-16")->package == 0);
    CHECK(t.find_root("0000-16")->nodes.empty());
    CHECK(t.worker_cpus_near_root("0000-16") == std::vector<int>{4, 6});
    CHECK(t.find_root("0001-e0")->nodes == std::vector<int>{1});
  }
  const std::vector<int> affinity{2, 6, 7};
  const Topology t = parse_topology(machine_file({}), "file", &affinity);
  CHECK(t.cpus() == 3);
  CHECK(t.worker_cpus() == std::vector<int>{2, 6});
  CHECK(t.worker_cpus(1) == std::vector<int>{2});
}

TEST_CASE("a limited set decides which node has the fewest CPUs around it") {
  // The machine's node is around all CPUs, but only those of package 1 may be used.
  const Topology t =
      parse_topology(machine_file({.far_node = true, .disallowed = {0, 1, 2, 3}}), "file");
  CHECK(cores_by_node(t) == std::vector<int>{0, 2, 0});
}

TEST_CASE("distances between nodes") {
  const std::string matrix =
      "<distances2 type=\"NUMANode\" nbobjs=\"2\" kind=\"5\" name=\"NUMALatency\" "
      "indexing=\"os\">\n<indexes length=\"4\">1 0 </indexes>\n"
      "<u64values length=\"6\">10 31 </u64values>\n<u64values length=\"6\">32 11 </u64values>\n"
      "</distances2>\n";
  FileMachine m{.after = matrix};
  CHECK(parse_topology(machine_file(m), "file").distances ==
        std::vector<std::vector<double>>{{11, 32}, {31, 10}});
  m.after.replace(m.after.find("kind=\"5\""), 8, "kind=\"9\"");  // bandwidth
  CHECK(parse_topology(machine_file(m), "file").distances.empty());
  // A GPU near memory without cores takes those at the least distance.
  FileMachine far{.packages = 3, .bridges = {{0, "0000:[10-1f]", {{"0000:11:00.0"}}}}};
  far.disallowed = {0, 1, 2, 3};
  far.after =
      "<distances2 type=\"NUMANode\" nbobjs=\"3\" kind=\"5\" indexing=\"os\">"
      "<indexes length=\"6\">0 1 2 </indexes><u64values length=\"27\">10 40 20 40 10 20 20 40 10 "
      "</u64values></distances2>\n";
  CHECK(parse_topology(machine_file(far), "file").worker_cpus_near_root("0000-10") ==
        std::vector<int>{8, 10});
  far.after = {};
  CHECK(parse_topology(machine_file(far), "file").worker_cpus_near_root("0000-10") ==
        std::vector<int>{4, 6, 8, 10});

  std::string text = machine_file({.version_1 = true});
  const std::string latencies =
      "<distances nbobjs=\"2\" relative_depth=\"1\" latency_base=\"10.000000\">"
      "<latency value=\"1.0\"/><latency value=\"2.1\"/><latency value=\"2.1\"/>"
      "<latency value=\"1.0\"/></distances>\n";
  text.insert(text.find("<info"), latencies);
  CHECK(parse_topology(text, "file").distances ==
        std::vector<std::vector<double>>{{10, 21}, {21, 10}});
}

TEST_CASE("one machine is recognised, whatever may be used of it") {
  const Topology whole = parse_topology(machine_file(with_gpus({})), "a");
  CHECK(is_same_machine(whole, whole));
  CHECK(is_same_machine(whole, parse_topology(machine_file({.disallowed = {1, 4}}), "b")));
  CHECK_FALSE(is_same_machine(whole, parse_topology(machine_file({.packages = 4}), "b")));
  CHECK_FALSE(is_same_machine(whole, parse_topology(machine_file({.cores = 3}), "b")));
  FileMachine other = with_gpus({});
  other.bridges[1].devices[0].address = "0000:18:00.0";
  CHECK_FALSE(is_same_machine(whole, parse_topology(machine_file(other), "b")));
}

TEST_CASE("what hwloc does not read is refused with one line") {
  const std::string good = machine_file(with_gpus({}));
  const auto refused = [&](const std::string& text, const std::string& what) {
    CAPTURE(what);
    const Raised raised = raised_by([&] { parse_topology(text, "f.xml"); });
    CHECK(raised.code == ExitCode::input);
    CHECK(raised.message.starts_with("f.xml: line "));
    CHECK(raised.says(what));
    CHECK(raised.message.find('\n') == std::string::npos);
  };
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    REQUIRE(text.find(from) != std::string::npos);
    return text.replace(text.find(from), from.size(), to);
  };
  refused("", "not XML");
  refused("Machine", "not XML");
  refused("{\"topology\": 1}", "not XML");
  refused(good.substr(0, good.size() / 2), "line ");
  refused(good + good, "");
  refused("<html></html>", "not a topology");
  refused("<topology></topology>", "no object");
  refused(changed("version=\"2.0\"", "version=\"3.0\""), "versions 1 and 2");
  refused(changed("version=\"2.0\"", "version=\"2.x\""), "versions 1 and 2");
  refused(changed("<object type=\"Package\"", "<object type=\"Toaster\""), "'Toaster'");
  refused(changed("<object type=\"Package\"", "<object kind=\"1\" type=\"Package\""), "its type");
  refused(changed(" type=\"Machine\"", " type=\"Package\""), "no machine");
  refused(changed(" cpuset=\"0x000000ff\"", ""), "cpuset");
  refused(changed(" cpuset=\"0x000000ff\"", " cpuset=\"all\""), "'all'");
  refused(changed(" cpuset=\"0x000000ff\"", " cpuset=\"0x0\""), "lacks");
  refused(changed("allowed_cpuset=\"0x000000ff\"", "allowed_cpuset=\"0x0\""), "no CPU");
  refused(changed("allowed_nodeset=\"0x00000003\"", "allowed_nodeset=\"0x0\""), "no NUMA node");
  refused(changed("type=\"PU\" os_index=\"1\" cpuset=\"0x00000002\"",
                  "type=\"PU\" os_index=\"0\" cpuset=\"0x00000001\""),
          "CPU 0 twice");
  const std::string node = "cpuset=\"0x000000f0\" complete_cpuset=\"0x000000f0\" nodeset=";
  refused(changed("\"NUMANode\" os_index=\"1\" " + node + "\"0x00000002\"",
                  "\"NUMANode\" os_index=\"0\" " + node + "\"0x00000001\""),
          "node 0 twice");
  refused(changed("type=\"PU\" os_index=\"1\"", "type=\"PU\" os_index=\"99999999999\""), "number");
  for (const char* memory : {"-1", "1e9", "2000000000000000", "99999999999999999999999", ""}) {
    refused(changed("local_memory=\"68719476736\"", "local_memory=\"" + std::string(memory) + "\""),
            "local_memory '" + std::string(memory) + "'");
  }
  for (const char* speed : {"-31.5", "1e300", "nan", "fast"}) {
    refused(
        changed("pci_link_speed=\"31.507692\"", "pci_link_speed=\"" + std::string(speed) + "\""),
        "pci_link_speed '" + std::string(speed) + "'");
  }
  refused(changed("<info name=\"OSName\" value=\"Linux\"/>", "<note/>"), "'note'");
  refused(changed("<info name=\"OSName\" value=\"Linux\"/>",
                  "<object type=\"Misc\"><object type=\"Core\" cpuset=\"0x1\"/></object>"),
          "cannot be below");
  FileMachine m;
  m.after =
      "<distances2 type=\"NUMANode\" nbobjs=\"2\" kind=\"5\" indexing=\"os\">"
      "<indexes length=\"4\">0 1 </indexes></distances2>";
  refused(machine_file(m), "distances");
  m.after = "<distances2 type=\"NUMANode\" nbobjs=\"4000000000\" kind=\"5\" indexing=\"os\"/>";
  refused(machine_file(m), "nbobjs");
  const std::string old = machine_file({.version_1 = true, .nodes = false});
  const auto of_version_1 = [&](const std::string& from, const std::string& to) {
    std::string text = old;
    REQUIRE(text.find(from) != std::string::npos);
    return text.replace(text.find(from), from.size(), to);
  };
  refused(of_version_1("local_memory=\"68719476736\"", "local_memory=\"-1\""), "local_memory '-1'");
  const std::string matrix = "<distances nbobjs=\"1\" relative_depth=\"1\" latency_base=\"";
  refused(of_version_1("<info", matrix + "-1\"><latency value=\"1\"/></distances><info"),
          "latency_base");
  refused(of_version_1("<info", matrix + "1\"><latency value=\"-1\"/></distances><info"),
          "a latency");
}

TEST_CASE("a file that contradicts itself is refused, whether hwloc reads it or not") {
  FileMachine m;
  m.bridges = {{0, "0000:[00-ff]", {{"0000:01:00.0"}}}};
  const std::string matrix =
      "<distances2 type=\"NUMANode\" nbobjs=\"2\" kind=\"5\" indexing=\"os\">"
      "<indexes length=\"4\">0 1 </indexes><u64values length=\"12\">10 20 20 10 "
      "</u64values></distances2>\n";
  m.after = matrix;
  const std::string good = machine_file(m);
  enum class Hwloc : uint8_t { refuses, leaves_out };
  const auto odd = [&](const std::string& begin, const std::string& from, const std::string& to,
                       Hwloc hwloc, const std::string& what) {
    std::string text = good;
    const size_t at = text.find(from, text.find(begin));
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    CAPTURE(what, begin, to);
    const Raised raised = raised_by([&] { parse_topology(text, "f.xml"); });
    CHECK(raised.code == ExitCode::input);
    const auto line = std::count(good.begin(), good.begin() + static_cast<long>(at), '\n') + 1;
    CHECK(raised.message.starts_with("f.xml: line " + std::to_string(line) + ": "));
    CHECK(raised.says(what));
    CHECK(ByHwloc::reads(text) == (hwloc == Hwloc::leaves_out));
  };
  REQUIRE(ByHwloc::reads(good));
  CHECK_NOTHROW(parse_topology(good, "f.xml"));

  // Of CPUs: hwloc leaves out what does not fit, and counts fewer than the file names.
  const std::string cpu = "type=\"PU\" os_index=\"1\"", core = "type=\"Core\" os_index=\"1\"",
                    package = "type=\"Package\" os_index=\"1\"",
                    node = "type=\"NUMANode\" os_index=\"1\"";
  const std::string other = "the cpuset of CPU 1 is another", lacks = "the object above it lacks";
  odd(cpu, " cpuset=\"0x00000002\"", " cpuset=\"0x00000001\"", Hwloc::leaves_out, other);
  odd(cpu, " cpuset=\"0x00000002\"", " cpuset=\"0x0\"", Hwloc::leaves_out, other);
  odd(cpu, " cpuset=\"0x00000002\"", " cpuset=\"0x00000003\"", Hwloc::leaves_out, other);
  odd(cpu, " cpuset=\"0x00000002\"", " cpuset=\"0x2,\"", Hwloc::leaves_out, lacks);
  odd(core, " cpuset=\"0x0000000c\"", " cpuset=\"0x00000030\"", Hwloc::leaves_out, lacks);
  odd(package, " cpuset=\"0x000000f0\"", " cpuset=\"0x000001f0\"", Hwloc::leaves_out, lacks);
  // Of nodes.
  odd(node, " nodeset=\"0x00000002\"", "", Hwloc::refuses, "without its nodeset");
  odd(node, " nodeset=\"0x00000002\"", " nodeset=\"0x0\"", Hwloc::leaves_out, "is another");
  odd(node, " nodeset=\"0x00000002\"", " nodeset=\"0x00000003\"", Hwloc::leaves_out, "is another");
  odd(node, "/>",
      "><object type=\"NUMANode\" os_index=\"7\" cpuset=\"0x1\" nodeset=\"0x80\"/></object>",
      Hwloc::leaves_out, "cannot be below");
  // Of devices and distances.
  odd("type=\"PCIDev\"", " pci_busid", " cpuset=\"0x1\" pci_busid", Hwloc::refuses, "cpuset");
  odd("type=\"PCIDev\"", "0000:01:00.0", "0000:01:00", Hwloc::leaves_out, "no PCI address");
  odd("type=\"PCIDev\"", "\"0302", "\"00302", Hwloc::leaves_out, "has no class");
  odd("<distances2", " kind=\"5\"", "", Hwloc::refuses, "without their kind");
  odd("<distances2", " indexing=\"os\"", "", Hwloc::refuses, "without their indexing");
  odd("<distances2", "20 10 </", "20 1.5</", Hwloc::leaves_out, "no whole numbers");
}

TEST_CASE("an object below one without a nodeset has none") {
  const std::string good = machine_file({});
  std::string text = good;
  const std::string set = " nodeset=\"0x00000003\" complete_nodeset=\"0x00000003\"";
  text.erase(text.find(set), set.size());  // of the machine
  CHECK(raised_by([&] { parse_topology(text, "f.xml"); }).says("below an object without one"));
  CHECK_FALSE(ByHwloc::reads(text));
}

TEST_CASE("the CPUs around a node are those of the object above it, as hwloc has them") {
  for (const char* cpus : {"0x0", "0x00000010", "0x000000f0", "0xf...f"}) {
    CAPTURE(cpus);
    std::string text = machine_file({});
    const std::string node = "type=\"NUMANode\" os_index=\"1\" cpuset=\"", set = "0x000000f0";
    text.replace(text.find(node) + node.size(), set.size(), cpus);
    if (!std::string(cpus).starts_with("0xf...")) {
      CHECK(cores_by_node(parse_topology(text, "file")) == std::vector<int>{2, 2});
      CHECK(ByHwloc(text).cores_by_node() == std::map<int, int>{{0, 2}, {1, 2}});
    } else {
      CHECK(raised_by([&] { parse_topology(text, "file"); }).says("lacks"));
    }
  }
}

TEST_CASE("only a bridge between host and PCI is a root complex") {
  const auto roots = [](const std::string& type) {
    FileMachine m;
    m.bridges = {{0, "0000:[00-ff]", {{"0000:01:00.0"}}}};
    std::string text = machine_file(m);
    const std::string good = "bridge_type=\"0-1\"";
    text.replace(text.find(good), good.size(), type);
    const Topology t = parse_topology(text, "file");
    CHECK(t.accelerators.size() == 1);
    CHECK(ByHwloc(text).roots().size() == t.roots.size());
    return t.roots.size();
  };
  CHECK(roots("bridge_type=\"0-1\"") == 1);
  CHECK(roots("bridge_type=\"1-1\"") == 0);
}

TEST_CASE("a topology file is a regular file") {
  const TemporaryDirectory place;
  const Raised missing = raised_by([&] { read_topology(place / "none.xml"); });
  CHECK(missing.code == ExitCode::input);
  CHECK(missing.says("none.xml"));
  CHECK(raised_by([&] { read_topology(place.path()); }).code == ExitCode::input);
}
