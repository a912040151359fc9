// Which GPU a run takes, and what it says if it takes none.
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdio>

#include "base/file_ops.h"
#include "base/log.h"
#include "cuda/cuda_fixture.h"
#include "setup/run_devices.h"
#include "support/raises.h"
#include "support/temporary_directory.h"

namespace hearth::test {
namespace {

DeviceRequest request(const std::string& devices) {
  DeviceRequest of;
  of.devices = devices;
  of.host_budget = uint64_t{1} << 30;
  return of;
}

/// The lines that are warned of while f runs.
std::vector<std::string> warnings_of(const std::function<void()>& f) {
  std::vector<std::string> lines;
  set_warning_sink([&](const std::string& line) { lines.push_back(line); });
  f();
  set_warning_sink({});
  return lines;
}

/// What is written to stderr while f runs.
std::string stderr_of(const std::function<void()>& f) {
  TemporaryDirectory dir;
  const std::string path = dir / "stderr";
  std::fflush(stderr);
  const int before = ::dup(STDERR_FILENO);
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  ::dup2(file, STDERR_FILENO);
  f();
  std::fflush(stderr);
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  ::close(file);
  return read_file(path, 1 << 20);
}

TEST_CASE("cuda choice: a GPU that there is no code for is refused") {
  FakeCudaOptions old;
  old.major = 7;
  old.minor = 5;
  CudaFixture f(old);
  const auto raised = raised_by([&] { open_devices(request("cuda:0")); });
  CHECK(raised.code == ExitCode::usage);
  CHECK(raised.says("--devices cuda:0: its compute capability is 7.5"));
  CHECK(raised.says("80-real,90-virtual"));
  CHECK(f.cuda.count("malloc_device") == 0);
}

TEST_CASE("cuda choice: auto is the host, and says how to ask for a GPU if there is a driver") {
  CudaFixture f;
  const std::string sign = f.dir / "driver";
  set_cuda_back_end({[](std::string& why_not) -> CudaCalls* {
                       why_not = "the driver is too old";
                       return nullptr;
                     },
                     emulated_ops().name(),
                     {},
                     {sign}});
  const auto open = [&] {
    const RunDevices run = open_devices(request("auto"));
    CHECK(run.places.size() == 1);
    CHECK(run.of_model == ModelPlaces{});
  };
  CHECK(stderr_of(open).empty());
  write_file_atomically(sign, "560");
  const std::string said = stderr_of(open);
  CHECK(said.find("--devices auto means host") != std::string::npos);
  CHECK(said.find("--devices cuda:0 asks for the first GPU") != std::string::npos);
  CHECK(warnings_of(open).empty());
  CHECK(raised_by([&] {
          open_devices(request("cuda:0"));
        }).says("--devices cuda:0: the driver is too old"));
}

TEST_CASE("cuda choice: a GPU is where its PCI address is, and neighbours in the pipeline apart") {
  FakeCudaOptions three;
  three.devices = 3;
  three.bus_ids = {"00000000:17:00.0", "0000:18:00.0", "0000:98:00.0"};
  CudaFixture f(three);
  Topology machine;
  machine.nodes = {{0, 0, 0}, {1, 0, 1}};
  machine.roots = {{"0000-16", 0, {0}}, {"0000-97", 1, {1}}};
  machine.accelerators = {{"0000:17:00.0", "0302", "", "0000-16", 0, {0}, 31.5e9, 0, {}},
                          {"0000:18:00.0", "0302", "", "0000-16", 0, {0}, 31.5e9, 0, {}},
                          {"0000:98:00.0", "0302", "", "0000-97", 1, {1}, 31.5e9, 0, {}}};
  DeviceRequest all = request("cuda:0,cuda:1,cuda:2");
  all.topology = &machine;
  all.cores = {};
  const RunDevices run = open_devices(all);
  REQUIRE(run.places.size() == static_cast<size_t>(run.hosts) + 3);
  const auto seat = [&](size_t gpu) {
    return run.places[static_cast<size_t>(run.hosts) + gpu].seat;
  };
  CHECK(seat(0).root == "0000-16");
  CHECK(seat(1).root == "0000-16");
  CHECK(seat(2).root == "0000-97");
  CHECK(seat(2).package == 1);
  CHECK(seat(2).nodes == std::vector<int>{1});
  // cuda:2 is alone below its root complex, so it stands between the two others.
  CHECK(run.of_model.dense.at(1) == run.hosts + 2);
  CHECK_FALSE(run.mapped.empty());
}

}  // namespace
}  // namespace hearth::test
