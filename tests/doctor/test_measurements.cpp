#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "base/stopwatch.h"
#include "device/virtual_device.h"
#include "doctor/found_libraries.h"
#include "doctor/link_measurement.h"
#include "doctor/machine_limits.h"
#include "doctor/pci_link.h"
#include "support/temporary_directory.h"

using namespace hearth;
using hearth::test::TemporaryDirectory;

namespace {

void write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

}  // namespace

TEST_CASE("limits are those of the system") {
  const TemporaryDirectory root;
  MachineLimits limits = read_machine_limits(root.path());
  CHECK(limits.huge_pages.empty());
  CHECK(limits.transparent_huge_pages.empty());
  const std::string memory = root / "sys/kernel/mm/";
  write(memory + "transparent_hugepage/enabled", "always [madvise] never\n");
  write(memory + "hugepages/hugepages-2048kB/nr_hugepages", "12\n");
  write(memory + "hugepages/hugepages-2048kB/free_hugepages", "3\n");
  write(memory + "hugepages/hugepages-1048576kB/nr_hugepages", "0\n");
  limits = read_machine_limits(root.path());
  CHECK(limits.transparent_huge_pages == "madvise");
  REQUIRE(limits.huge_pages.size() == 2);
  CHECK(limits.huge_pages[0].bytes == 2048 * 1024);
  CHECK(limits.huge_pages[0].total == 12);
  CHECK(limits.huge_pages[0].free == 3);
  CHECK(limits.huge_pages[1].bytes == uint64_t{1} << 30);
  write(memory + "transparent_hugepage/enabled", "]nonsense[\n");
  CHECK(read_machine_limits(root.path()).transparent_huge_pages.empty());
}

TEST_CASE("the speed of a PCIe link") {
  const TemporaryDirectory root;
  const std::string folder = root / "sys/bus/pci/devices/0000:17:00.0/";
  CHECK_FALSE(read_pci_link("0000:17:00.0", root.path()));
  write(folder + "current_link_width", "8\n");
  write(folder + "max_link_width", "16\n");
  write(folder + "current_link_speed", "2.5 GT/s PCIe\n");  // asleep
  CHECK_FALSE(read_pci_link("0000:17:00.0", root.path()));
  const auto rate = [&](const std::string& speed) {
    write(folder + "max_link_speed", speed + "\n");
    const auto link = read_pci_link("0000:17:00.0", root.path());
    return link ? link->bytes_per_s() / 1e9 : 0;
  };
  CHECK(std::abs(rate("16.0 GT/s PCIe") - 15.754) < 0.001);
  CHECK(std::abs(rate("32.0 GT/s PCIe") - 31.508) < 0.001);
  CHECK(std::abs(rate("64.0 GT/s PCIe") - 60.5) < 0.001);
  CHECK(std::abs(rate("5.0 GT/s PCIe") - 4.0) < 0.001);
  CHECK(rate("Unknown") == 0);
  CHECK(rate("16.0") == 0);
  rate("16.0 GT/s PCIe");
  CHECK(read_pci_link("0000:17:00.0", root.path())->lanes == 8);
  CHECK(read_pci_link("0000:17:00.0", root.path())->most_lanes == 16);
  write(folder + "current_link_width", "0\n");  // no link
  CHECK_FALSE(read_pci_link("0000:17:00.0", root.path()));
}

TEST_CASE("links of devices reach their speed, and share their root complex") {
  VirtualOptions options;
  options.h2d = 4e6;  // slow, so that the speed of this machine hardly matters
  options.d2h = 2e6;
  options.root = std::make_shared<RootComplex>(5e6);
  const auto first = make_virtual_device(options);
  options.name = "virtual:1";
  const auto second = make_virtual_device(options);
  const std::vector<MeasuredDevice> devices{{first.get(), 4e6, 2e6}, {second.get(), 4e6, 2e6}};
  bool close = false;  // other work on the machine can keep links from their speed
  std::vector<LinkMeasurement> links;
  for (int attempt = 0; attempt < 8 && !close; ++attempt) {
    links = measure_device_links(devices, {2, 8 << 20});
    close = std::ranges::all_of(links, [](const LinkMeasurement& link) {
      return link.alone > 0.5 * link.nominal && link.together > 0.2 * link.nominal;
    });
  }
  CHECK(close);
  REQUIRE(links.size() == 4);
  CHECK(links[0].link == "host->virtual:0");
  CHECK(links[1].link == "virtual:0->host");
  CHECK(links[3].link == "virtual:1->host");
  for (size_t i = 0; i < 4; ++i) {
    CAPTURE(i, links[i].alone, links[i].together);
    CHECK(links[i].nominal == (i % 2 == 0 ? 4e6 : 2e6));
    CHECK(links[i].alone < 1.05 * links[i].nominal);
    CHECK(links[i].together < 1.1 * links[i].nominal);
  }
  CHECK(links[0].together + links[2].together < 1.2 * 5e6);
  CHECK(measure_device_links({}, {}).empty());
}

TEST_CASE("a small or slow device is measured, too") {
  VirtualOptions options;
  options.memory = 4096;
  options.h2d = 2000;  // bytes per second
  const auto device = make_virtual_device(options);
  const std::vector<MeasuredDevice> devices{{device.get(), 2000, 0}};
  const Stopwatch watch;
  const auto links = measure_device_links(devices, {1, 1 << 20});
  CHECK(watch.seconds() < 60);
  CHECK(links[0].alone < 2100);
  CHECK(links[0].alone > 1000);
  CHECK(links[1].alone > 2000);
}

namespace {

/// Counts how long copies would have waited, and does not wait.
class CountingClock : public LinkClock {
 public:
  double now() override { return steady_link_clock().now(); }
  void sleep_until(double seconds) override {
    const std::lock_guard lock(mutex_);
    waited_ = std::max(waited_, seconds - now());
  }
  double longest() const { return waited_; }

 private:
  std::mutex mutex_;
  double waited_ = 0;
};

}  // namespace

TEST_CASE("a copy that outlasts the bounds is not begun") {
  CountingClock clock;
  VirtualOptions slow;
  slow.latency = 60;
  VirtualOptions narrow;
  narrow.h2d = 1;  // the least piece has 64 bytes
  narrow.name = "virtual:1";
  const auto first = make_virtual_device(slow, clock), second = make_virtual_device(narrow, clock);
  const std::vector<MeasuredDevice> devices{{first.get(), 0, 0, 60, 60}, {second.get(), 1, 0}};
  const auto links = measure_device_links(devices, {2, 8 << 20});
  CHECK(clock.longest() < 2);
  REQUIRE(links.size() == 4);
  for (const size_t i : {0, 1, 2}) {
    CAPTURE(i);
    CHECK(links[i].too_slow);
    CHECK(links[i].alone == 0);
    CHECK(links[i].together == 0);
  }
  CHECK_FALSE(links[3].too_slow);  // what can be measured is
  CHECK(links[3].alone > 0);
  CHECK(links[3].together > 0);
}

TEST_CASE("what is late is left out, and said to be") {
  const auto device = make_virtual_device({});
  const std::vector<MeasuredDevice> devices{{device.get(), 0, 0}};
  for (const double seconds : {0.0, -3.0}) {  // the deadline has passed
    for (const auto& links : {measure_device_links(devices, {seconds, 1 << 20, 60}),
                              measure_memory(detect_topology(), {seconds, 16 << 20, 60})}) {
      REQUIRE_FALSE(links.empty());
      for (const LinkMeasurement& link : links) {
        CHECK(link.too_slow);
        CHECK(link.alone == 0);
        CHECK(link.together == 0);
      }
    }
  }
}

TEST_CASE("a busy machine has more time for its memory") {
  // The buffers alone take longer.
  const MeasurementBounds quiet{1e-9, 16 << 20}, busy{1e-9, 16 << 20, 600};
  for (const LinkMeasurement& link : measure_memory(detect_topology(), quiet)) {
    CHECK(link.too_slow);
  }
  for (const LinkMeasurement& link : measure_memory(detect_topology(), busy)) {
    CHECK_FALSE(link.too_slow);
    CHECK(link.alone > 0);
    CHECK(link.together > 0);
  }
}

TEST_CASE("links at once are not begun if what they reach alone leaves no time") {
  VirtualOptions slow;
  slow.h2d = slow.d2h = 20e6;  // bytes per second, which the doctor is not told
  std::vector<std::unique_ptr<Device>> made;
  std::vector<MeasuredDevice> devices;
  for (int i = 0; i < 4; ++i) {
    slow.name = "virtual:" + std::to_string(i);
    made.push_back(make_virtual_device(slow));
    devices.push_back({made.back().get(), 0, 0});
  }
  // A piece has 1 MiB: 50 ms. Two pieces of eight links one after the other are 0.8 s.
  const auto links = measure_device_links(devices, {1.0, 16 << 20});
  bool late = false;
  for (const LinkMeasurement& link : links) {
    late |= link.too_slow;
    CHECK(link.together == 0);
  }
  CHECK(late);
}

TEST_CASE("memory is measured by node, within its time") {
  Topology t = detect_topology();
  const auto links = measure_memory(t, {1, 16 << 20, 60});
  if (t.nodes.size() == 1) {
    REQUIRE(links.size() == 1);
    CHECK(links[0].link == "host->host");
  }
  for (const LinkMeasurement& link : links) {
    CHECK(link.nominal == 0);
    CHECK(link.alone > 1e6);
    CHECK(link.together > 1e6);
  }
  // Two nodes with the cores of this machine.
  t.nodes = {{0, 1, 0}, {3, 1, 0}};
  const TopologyCore core = t.cores.front();
  t.cores = {core, core};
  t.cores[0].node = 0;
  t.cores[1].node = 3;
  const auto two = measure_memory(t, {1, 16 << 20, 60});
  REQUIRE(two.size() == 4);
  CHECK(two[0].link == "host:0->host:0");
  CHECK(two[1].link == "host:0->host:3");
  CHECK(two[2].link == "host:3->host:0");
  for (const LinkMeasurement& link : two) {
    CHECK(link.alone > 1e6);
    CHECK(link.together > 1e6);
  }
  t.has_real_nodes = false;  // as a test asks for
  CHECK(measure_memory(t, {1, 16 << 20, 60}).size() == 4);
}

TEST_CASE("versions of libraries") {
  CHECK(nccl_version(22304) == "2.23.4");
  CHECK(nccl_version(20907) == "2.9.7");
  CHECK(nccl_version(2804) == "2.8.4");
  for (const auto& library : {find_mpi(), find_nccl()}) {
    if (library) CHECK(library->file.starts_with("lib"));
  }
}
