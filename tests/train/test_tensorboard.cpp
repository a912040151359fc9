#include "record/tensorboard.h"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "support/failing_calls.h"
#include "support/temporary_directory.h"

using namespace hearth;

namespace {

std::string hex(const std::string& bytes) {
  std::string text;
  for (const unsigned char c : bytes) {
    text += "0123456789abcdef"[c >> 4];
    text += "0123456789abcdef"[c & 15];
  }
  return text;
}

// The payloads of the records of a file; both sums are checked.
std::vector<std::string> records(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::vector<std::string> payloads;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t length = 0;
    REQUIRE(bytes.size() - at >= 16);
    std::memcpy(&length, bytes.data() + at, 8);
    REQUIRE(bytes.size() - at - 16 >= length);
    const std::string payload = bytes.substr(at + 12, length);
    CHECK(bytes.substr(at, length + 16) == tensorboard_record(payload));
    payloads.push_back(payload);
    at += length + 16;
  }
  return payloads;
}

std::string only_file(const std::string& directory) {
  const std::filesystem::directory_iterator begin(directory);
  REQUIRE(std::distance(begin, std::filesystem::directory_iterator()) == 1);
  return std::filesystem::directory_iterator(directory)->path().string();
}

}  // namespace

TEST_CASE("sums and the first record, against published vectors") {
  CHECK(crc32c("123456789") == 0xe3069283u);
  CHECK(crc32c("") == 0);
  CHECK(hex(tensorboard_record(tensorboard_version_event(1.0))) ==
        "1800000000000000a37f4b2209000000000000f03f1a0d627261696e2e4576656e743a3286bf577a");
}

TEST_CASE("an event with scalars, byte by byte") {
  // wall_time 1.0, step 300, summary { value { tag "a" simple_value 1.5 } }
  CHECK(hex(tensorboard_scalar_event(1.0, 300, {{"a", 1.5}})) ==
        "09000000000000f03f"
        "10ac02"
        "2a0a"
        "0a08"
        "0a0161"
        "150000c03f");
}

TEST_CASE("values that are no finite f32 are written as f32 has them") {
  const auto value = [](double x) {
    return hex(tensorboard_scalar_event(1.0, 1, {{"a", x}})).substr(36);
  };
  CHECK(value(std::numeric_limits<double>::quiet_NaN()) == "150000c07f");
  CHECK(value(-HUGE_VAL) == "15000080ff");
  CHECK(value(1e39) == "150000807f");
}

TEST_CASE("a file of events") {
  test::TemporaryDirectory d;
  {
    TensorBoardLog log(d.path());
    StepMetrics m;
    m.step = 1;
    m.loss = 2;
    log.step(m);
    log.scalars(1, {{"eval/loss", 3}});
  }
  const std::string path = only_file(d.path());
  CHECK(std::filesystem::path(path).filename().string().starts_with("events.out.tfevents."));
  const auto payloads = records(path);
  REQUIRE(payloads.size() == 3);
  CHECK(payloads[0].find("brain.Event:2") != std::string::npos);
  for (const char* tag : {"train/loss", "train/learning_rate", "train/grad_norm"}) {
    CHECK(payloads[1].find(tag) != std::string::npos);
  }
  CHECK(payloads[2].find("eval/loss") != std::string::npos);
}

TEST_CASE("a record that failed in the middle is written whole at the second try") {
  test::TemporaryDirectory d;
  {
    test::FailingCalls calls;
    FileCallsOverride guard(calls);
    TensorBoardLog log(d.path());
    calls.piece = 7;
    calls.fail_at = calls.count() + 3;
    log.scalars(1, {{"a", 1}});
    CHECK(calls.failed());
  }
  CHECK(records(only_file(d.path())).size() == 2);
}
