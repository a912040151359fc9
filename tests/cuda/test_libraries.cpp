// Libraries that ops call: held to our own kernels when a GPU is opened, and part of what a run is.
#include <catch2/catch_test_macros.hpp>

#include "base/sanitized.h"
#include "cuda/cuda_fixture.h"
#include "cuda_emulator/plain_library.h"
#include "device/cuda_device.h"
#include "runtime/library_check.h"
#include "support/raises.h"

namespace hearth::test {
namespace {

/// The emulator's library while it lives; every library may be called afterwards.
struct Library {
  explicit Library(PlainLibrary library) { set_plain_library(library); }
  ~Library() {
    set_plain_library(PlainLibrary::absent);
    for (const char* name : {"cuBLASLt", "CUTLASS"}) emulated_ops().call_library(name, true);
  }
};

std::vector<std::string> checked(CudaFixture& f) {
  if (kSanitized) SKIP("takes a minute where instrumented; the run below checks a library, too");
  CudaDeviceOptions options;
  const CudaDevices devices = make_cuda_devices(f.cuda, {&options, 1});
  return check_libraries(*devices.devices.front(), emulated_ops());
}

TEST_CASE("libraries: one that computes what own kernels do is called") {
  const Library library(PlainLibrary::right);
  CudaFixture f;
  const std::vector<std::string> lines = checked(f);
  CHECK(lines.empty());
  REQUIRE(emulated_ops().libraries().size() == 2);
  CHECK(emulated_ops().libraries()[0].name == "cuBLASLt");
  CHECK(emulated_ops().libraries()[1].name == "CUTLASS");
}

TEST_CASE("libraries: one whose results differ is not called, and why is said") {
  const Library library(PlainLibrary::wrong);
  CudaFixture f;
  const std::vector<std::string> lines = checked(f);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].starts_with("CUTLASS is not used: results of experts in bf16 differ"));
  CHECK(lines[1].starts_with("cuBLASLt is not used: results of a linear map differ"));
  CHECK(emulated_ops().libraries().empty());
}

TEST_CASE("libraries: one that fails is not called") {
  const Library library(PlainLibrary::failing);
  CudaFixture f;
  const std::vector<std::string> lines = checked(f);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == "CUTLASS is not used: experts in bf16: the library fails");
  CHECK(lines[1] == "cuBLASLt is not used: a linear map: the library fails");
}

TEST_CASE("libraries: one that breaks the GPU is named, and how to do without it is said") {
  CudaFixture f;
  const Library library(PlainLibrary::right);
  set_plain_library(PlainLibrary::right, [&] { f.cuda.fail_work(716); });
  const auto raised = raised_by([&] { checked(f); });
  CHECK(raised.code == ExitCode::device);
  INFO(raised.message);
  CHECK(raised.says("cuBLASLt broke the device in a trial of a linear map"));
  CHECK(raised.says("HEARTH_WITHOUT=cuBLASLt"));
  CHECK(raised.says("716"));
}

TEST_CASE("libraries: a run is the same to rounding with one, and its state says so") {
  CudaFixture f;
  const auto steps = f.metrics_of(f.short_run("without", "cuda:0"));
  const Library library(PlainLibrary::right);
  TrainConfig config = f.short_run("with", "cuda:0");
  REQUIRE(f.run_until(config, 2) == ExitCode::stopped);
  RecordingReporter reporter;
  emulated_ops().call_library("cuBLASLt", false);
  REQUIRE(train(config, reporter) == ExitCode::done);
  CHECK(std::abs(reporter.steps.back().loss - steps.back().loss) < 1e-5 * steps.back().loss);
  const std::string journal = read_file(f.dir / "with/journal.jsonl");
  INFO(journal);
  CHECK(journal.find("libraries: ") != std::string::npos);
}

}  // namespace
}  // namespace hearth::test
