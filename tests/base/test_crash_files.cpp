// What a power loss may leave of small files that are replaced, and of logs.
#include <catch2/catch_test_macros.hpp>

#include "base/error.h"
#include "support/crash_states.h"
#include "support/faulty_calls.h"
#include "support/planted.h"

using namespace hearth;
using namespace hearth::test;

namespace {

const std::string kCrashDisk = "/memory-disk";
const std::string kSmallFile = kCrashDisk + "/run/config.yaml";
const std::string kCrashLog = kCrashDisk + "/run/metrics.jsonl";

std::string version_text(int version) {
  return "version " + std::to_string(version) + std::string(2000, static_cast<char>('a' + version));
}

/// The file after it was written `times` times, crashed at any time.
CrashReport crash_of_replacing(int times) {
  MemoryDisk disk(kCrashDisk);
  FaultyCalls calls(disk);
  const FileCallsOverride guard(calls);
  make_directory(kCrashDisk + "/run");
  disk.settle();
  for (int version = 1; version <= times; ++version) {
    write_file_atomically(kSmallFile, version_text(version));
    disk.promise(version);
  }
  return crash_states(disk, {3000, 300}, [&](MemoryDisk& crashed, int promised) {
    FaultyCalls layer(crashed);
    const FileCallsOverride inner(layer);
    std::string found;
    if (file_info(kSmallFile).kind != FileKind::none) found = read_file(kSmallFile);
    bool known = promised == 0 && found.empty();
    for (int version = std::max(promised, 1); version <= times; ++version) {
      known = known || found == version_text(version);
    }
    if (!known) return "neither the old text nor the new: " + found.substr(0, 30);
    write_file_atomically(kSmallFile, version_text(9));
    const bool clean =
        list_directory(kCrashDisk + "/run") == std::vector<std::string>{"config.yaml"};
    return std::string(
        clean && read_file(kSmallFile) == version_text(9) ? "" : "cannot be written again");
  });
}

std::string log_line(int n) {
  return "{\"step\":" + std::to_string(n) + std::string(700, 'x') + "}";
}

std::string log_lines(int n) {
  std::string text;
  for (int i = 1; i <= n; ++i) text += log_line(i) + "\n";
  return text;
}

/// Lines 1 to 3 synced, 4 to 6 not, then a crash and the next start.
CrashReport crash_of_appending() {
  MemoryDisk disk(kCrashDisk);
  FaultyCalls calls(disk);
  const FileCallsOverride guard(calls);
  make_directory(kCrashDisk + "/run");
  AppendFile log(kCrashLog);
  for (int n = 1; n <= 6; ++n) {
    log.line(log_line(n));
    if (n != 3) continue;
    log.sync();
    disk.promise(3);
  }
  return crash_states(disk, {20000, 300}, [&](MemoryDisk& crashed, int promised) {
    FaultyCalls layer(crashed);
    const FileCallsOverride inner(layer);
    const bool there = file_info(kCrashLog).kind != FileKind::none;
    const std::string before = there ? read_file(kCrashLog) : "";
    cut_torn_line(kCrashLog);
    const std::string cut = there ? read_file(kCrashLog) : "";
    if (!cut.starts_with(log_lines(promised))) return std::string("a synced line is missing");
    if (!cut.empty() && cut.back() != '\n') return std::string("a torn line stays");
    if (!before.starts_with(cut) || before.find('\n', cut.size()) != std::string::npos) {
      return std::string("more than a torn line was cut");
    }
    if (!there) return std::string();
    AppendFile again(kCrashLog);
    again.line(log_line(7));
    return std::string(read_file(kCrashLog) == cut + log_line(7) + "\n" ? ""
                                                                        : "lines run together");
  });
}

}  // namespace

TEST_CASE("crash states of a replaced file hold the old text or the new one") {
  for (const int times : {1, 2}) {
    const CrashReport report = crash_of_replacing(times);
    CHECK(report.fault == "");
    CHECK(report.states > 20);
  }
}

TEST_CASE("crash states of a log hold what was synced, and can be appended to") {
  const CrashReport report = crash_of_appending();
  CHECK(report.fault == "");
  CHECK(report.states > 200);
}

TEST_CASE("crash states show a file that is not synced, and faults of logs") {
  {
    const PlantedFault guard("skip-sync-config");
    CHECK(crash_of_replacing(2).fault != "");
  }
  for (const char* fault : {"skip-sync-log", "truncate-log", "no-torn-line-cut", "cut-too-far"}) {
    INFO(fault);
    const PlantedFault guard(fault);
    CHECK(crash_of_appending().fault != "");
  }
}
