// Which GPU a run takes, and what it says where it takes none.
#include <catch2/catch_test_macros.hpp>

#include "base/file_ops.h"
#include "base/log.h"
#include "cuda/cuda_fixture.h"
#include "setup/run_devices.h"
#include "support/raises.h"

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

TEST_CASE("cuda choice: a GPU that there is no code for is refused, and auto goes without it") {
  FakeCudaOptions old;
  old.major = 7;
  old.minor = 5;
  CudaFixture f(old);
  const auto raised = raised_by([&] { open_devices(request("cuda:0")); });
  CHECK(raised.code == ExitCode::usage);
  CHECK(raised.says("--devices cuda:0: its compute capability is 7.5"));
  CHECK(raised.says("80-real,90-virtual"));
  CHECK(open_devices(request("auto")).places.size() == 1);
  CHECK(f.cuda.count("malloc_device") == 0);
}

TEST_CASE("cuda choice: where a driver shows a GPU, auto warns when it takes none") {
  CudaFixture f;
  const std::string sign = f.dir / "driver";
  const auto set = [&](const std::string& file) {
    set_cuda_back_end({[](std::string& why_not) -> CudaCalls* {
                         why_not = "the driver is too old";
                         return nullptr;
                       },
                       emulated_ops().name(),
                       {},
                       {file}});
  };
  const auto open = [&] { CHECK(open_devices(request("auto")).places.size() == 1); };
  set(sign);
  CHECK(warnings_of(open).empty());
  write_file_atomically(sign, "560");
  CHECK(warnings_of(open) == std::vector<std::string>{"no GPU is used: the driver is too old"});
  CHECK(raised_by([&] {
          open_devices(request("cuda:0"));
        }).says("--devices cuda:0: the driver is too old"));
}

}  // namespace
}  // namespace hearth::test
