// When the check of libraries is made again, and when an earlier start's is enough. What the check
// finds is tested with emulated kernels (tests/cuda/test_libraries.cpp).
#include <catch2/catch_test_macros.hpp>

#include "base/file_ops.h"
#include "device/cuda_device.h"
#include "device/host_device.h"
#include "runtime/library_check.h"
#include "runtime/recording_ops.h"
#include "support/temporary_directory.h"

namespace hearth::test {
namespace {

struct Starts {
  TemporaryDirectory directory;
  RememberedChecks checks{directory / "checks"};
  RecordingOps ops;
  LibraryVerdict verdict;

  Starts() { ops.listed = {{"cuBLASLt", "13.1"}, {"cuDNN", "9.19"}}; }
  ~Starts() {
    RecordingOps::library_fails() = false;
    RecordingOps::calls_library() = true;
  }

  /// Whether a start on a machine with these facts computes anything.
  bool computes(const FakeCudaOptions& options = {}) {
    FakeCuda cuda(options);
    const CudaDeviceOptions gpu;
    const CudaDevices made = make_cuda_devices(cuda, {&gpu, 1});
    verdict = check_libraries_once(*made.devices.front(), ops, checks);
    CHECK(verdict.remembered == (!ops.listed.empty() && cuda.count("launch") == 0));
    return cuda.count("launch") > 0;
  }
};

TEST_CASE("library check: a start uses what an earlier one found on the same machine") {
  Starts starts;
  CHECK(starts.computes());
  CHECK(starts.verdict.lines.empty());
  CHECK_FALSE(starts.computes());
  CHECK(starts.verdict.lines.empty());
}

TEST_CASE("library check: another driver or library version is checked by itself") {
  Starts starts;
  CHECK(starts.computes());
  FakeCudaOptions other;
  other.driver = "fake driver 2";
  CHECK(starts.computes(other));
  CHECK_FALSE(starts.computes(other));
  starts.ops.listed[1].version = "9.20";
  CHECK(starts.computes());
  CHECK_FALSE(starts.computes());
}

TEST_CASE("library check: a damaged file only repeats the check") {
  Starts starts;
  CHECK(starts.computes());
  const std::string folder = starts.directory / "checks";
  const std::vector<std::string> names = list_directory(folder);
  REQUIRE(names.size() == 1);
  write_file_atomically(folder + "/" + names.front(), "cut");
  CHECK(starts.computes());
  CHECK_FALSE(starts.computes());
}

TEST_CASE("library check: a library that failed is checked at every start") {
  Starts starts;
  RecordingOps::library_fails() = true;
  for (int start = 0; start < 2; ++start) {
    CHECK(starts.computes());
    CHECK(starts.verdict.lines.size() == 2);
    CHECK_FALSE(starts.verdict.remembered);
  }
  CHECK(file_info(starts.directory / "checks").kind == FileKind::none);
}

TEST_CASE("library check: without libraries nothing is computed or remembered") {
  Starts starts;
  starts.ops.listed.clear();
  CHECK_FALSE(starts.computes());
  CHECK(file_info(starts.directory / "checks").kind == FileKind::none);
}

}  // namespace
}  // namespace hearth::test
