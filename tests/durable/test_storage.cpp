// Disks that are full, limited, read-only or gone, under the real program: code 4 with one line or
// success, older states whole, and the same command later ends at the same bits.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/file_ops.h"
#include "base/sanitized.h"
#include "durable/tiny_run.h"
#include "support/test_paths.h"

namespace hearth::test {
namespace {

namespace fs = std::filesystem;

/// Mounts of this process that no other one sees and that go with it. "" or why there are none.
std::string private_mounts() {
  static const std::string reason = [] {
    if (::geteuid() != 0) return std::string("needs root");
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      return std::string("no mount namespace: ") + std::strerror(errno);
    }
    return std::string();
  }();
  return reason;
}

/// A file system of so many bytes in a directory.
class SmallDisk {
 public:
  SmallDisk(const std::string& path, uint64_t bytes) : path_(path) {
    fs::create_directory(path);
    const std::string size = "size=" + std::to_string(bytes) + ",mode=0777";
    mounted_ = ::mount("none", path.c_str(), "tmpfs", 0, size.c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool mounted() const { return mounted_; }
  /// Fills it but for so many bytes, in whole pages.
  void fill(uint64_t but) {
    const uint64_t space = free_bytes(path_);
    if (space <= but) return;
    const int fd = ::open((path_ + "/ballast").c_str(), O_WRONLY | O_CREAT, 0600);
    const bool filled = ::posix_fallocate(fd, 0, static_cast<off_t>(space - but)) == 0;
    ::close(fd);
    if (!filled) throw std::runtime_error("the disk cannot be filled");
  }
  void empty() { fs::remove(path_ + "/ballast"); }

 private:
  std::string path_;
  bool mounted_ = false;
};

/// Of a run on a failing disk: code 0, or 4 with a last line that says so.
std::string wrong_failure(const Ended& end) {
  if (end.code == 0) return "";
  const size_t last = end.err.rfind("hearth: ");
  if (end.code == 4 && last != std::string::npos && (last == 0 || end.err[last - 1] == '\n') &&
      std::count(end.err.begin() + static_cast<int64_t>(last), end.err.end(), '\n') == 1) {
    return "";
  }
  return "code " + std::to_string(end.code) + ": " + end.err;
}

std::string leftover(const std::string& run) {
  for (const auto& [name, content] : content_below(run)) {
    if (name.find(".tmp-") != std::string::npos || name.find(".trash-") != std::string::npos) {
      return name;
    }
  }
  return "";
}

TEST_CASE("storage: a disk of every size") {
  if (const std::string none = private_mounts(); !none.empty()) SKIP(none);
  const TinyRun tiny;
  REQUIRE(tiny.run(tiny.train("whole")).code == 0);
  const Outcome expected = tiny.outcome("whole");
  bool refused = false, done = false;
  for (uint64_t size = 8 << 10; !done; size += size / 5) {
    INFO("a disk of " << size << " bytes");
    const SmallDisk disk(tiny.d / "disk", size & ~uint64_t{4095});
    REQUIRE(disk.mounted());
    const Ended end = tiny.run(tiny.train("disk/run"));
    REQUIRE(wrong_failure(end) == "");
    done = end.code == 0;
    refused = refused || !done;
    if (done) CHECK(tiny.wrong_at_end("disk/run", 2, expected) == "");
    if (!done) CHECK(leftover(tiny.d / "disk") == "");
  }
  CHECK(refused);
}

/// Fills the disk, but for some room, while a run stands still before a file operation.
void fill_in_the_middle(int times) {
  const TinyRun tiny;
  Seeded random(4);
  INFO("HEARTH_SEED=" << random.seed);
  Start counted = tiny.train("whole");
  counted.environment["HEARTH_CALL_LOG"] = tiny.d / "calls";
  REQUIRE(tiny.run(counted).code == 0);
  const Outcome expected = tiny.outcome("whole");
  const std::string log = read_file(tiny.d / "calls");
  const int64_t calls = std::count(log.begin(), log.end(), '\n');
  int failed = 0, survived = 0;
  for (int i = 0; i < times; ++i) {
    SmallDisk disk(tiny.d / "disk", 16 << 20);
    REQUIRE(disk.mounted());
    const int64_t call = random.whole(calls / 20, calls);
    const auto room = static_cast<uint64_t>(random.whole(0, 40)) * 4096;
    INFO("before call " << call << " of " << calls << ", room for " << room << " bytes");
    const Start start = tiny.train("disk/run");
    Start stopping = start;
    stopping.environment["HEARTH_KILL_AT"] = std::to_string(call);
    stopping.environment["HEARTH_KILL_BY"] = std::to_string(SIGSTOP);
    Process process(test_binary(), stopping);
    if (process.wait_for_stop()) disk.fill(room);
    process.signal(SIGCONT);
    const Ended end = process.wait();
    INFO(end.err);
    REQUIRE(wrong_failure(end) == "");
    failed += end.code == 4;
    survived += end.code == 0 && end.err.find("could not be saved") != std::string::npos;
    REQUIRE(tiny.wrong_between("disk/run", 2) == "");
    CHECK(leftover(tiny.d / "disk/run") == "");
    disk.empty();
    REQUIRE(tiny.finish(start) == "");
    REQUIRE(tiny.wrong_at_end("disk/run", 2, expected) == "");
  }
  CHECK(failed > 0);
  CHECK(failed + survived > times / 15);
}

TEST_CASE("storage: a disk that fills up during a run") {
  if (const std::string none = private_mounts(); !none.empty()) SKIP(none);
  fill_in_the_middle(kSanitized ? 6 : 30);
}

TEST_CASE("storage: a disk that fills up, at many places", "[.long]") {
  if (const std::string none = private_mounts(); !none.empty()) SKIP(none);
  fill_in_the_middle(500);
}

TEST_CASE("storage: files of limited size") {
  const TinyRun tiny;
  REQUIRE(tiny.run(tiny.train("whole")).code == 0);
  const Outcome expected = tiny.outcome("whole");
  int failed = 0;
  for (rlim_t most = 0; most < 200'000; most += most / 3 + 700) {
    INFO("files of at most " << most << " bytes");
    const Start start = tiny.train("run");
    Start limited = start;
    limited.limits = {{RLIMIT_FSIZE, most}};
    const Ended end = tiny.run(limited);
    INFO(end.err);
    // What is printed goes to a file, too.
    if (most > 1000) REQUIRE(wrong_failure(end) == "");
    REQUIRE((end.code == 0 || end.code == 4));
    failed += end.code == 4;
    REQUIRE(tiny.wrong_between("run", 2) == "");
    CHECK(leftover(tiny.d / "run") == "");
    REQUIRE(tiny.finish(start) == "");
    REQUIRE(tiny.wrong_at_end("run", 2, expected) == "");
    fs::remove_all(tiny.d / "run");
  }
  CHECK(failed > 5);
}

TEST_CASE("storage: directories that cannot be written") {
  const TinyRun tiny;
  const auto refused = [&](const Start& start, const std::string& path) {
    return wrong_refusal(tiny.run(start), 4, {path});
  };
  if (::geteuid() == 0) {
    // As another user: the model and the rows may be read, nothing may be written.
    ::chmod(tiny.d.path().c_str(), 0755);
    fs::create_directory(tiny.d / "there");
    for (const std::string out : {"there", "there/run", "run"}) {
      Start start = tiny.train(out);
      start.nobody = true;
      CHECK(refused(start, tiny.d / out) == "");
    }
    CHECK(fs::is_empty(tiny.d / "there"));
  } else {
    fs::create_directory(tiny.d / "there");
    ::chmod((tiny.d / "there").c_str(), 0555);
    CHECK(refused(tiny.train("there"), tiny.d / "there") == "");
    ::chmod((tiny.d / "there").c_str(), 0755);
  }
  if (const std::string none = private_mounts(); !none.empty()) SKIP(none);
  REQUIRE(tiny.run(tiny.train("finished")).code == 0);
  REQUIRE(tiny.run(tiny.train("stopped", {"--final-state", "off", "--save-every", "4"})).code == 0);
  fs::remove_all(tiny.d / "stopped/model");
  fs::remove(tiny.d / "stopped/journal.jsonl");
  fs::create_directory(tiny.d / "empty");
  for (const std::string out : {"empty", "stopped"}) {
    const auto before = content_below(tiny.d / out);
    const std::string path = tiny.d / out;
    REQUIRE(::mount(path.c_str(), path.c_str(), nullptr, MS_BIND, nullptr) == 0);
    REQUIRE(::mount("none", path.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) == 0);
    const std::vector<std::string> more =
        out == "empty" ? std::vector<std::string>{}
                       : std::vector<std::string>{"--final-state", "off", "--save-every", "4"};
    CHECK(refused(tiny.train(out, more), path) == "");
    ::umount2(path.c_str(), MNT_DETACH);
    CHECK(content_below(tiny.d / out) == before);
  }
}

TEST_CASE("storage: directories that vanish during a run") {
  const TinyRun tiny;
  Seeded random(9);
  INFO("HEARTH_SEED=" << random.seed);
  Start counted = tiny.train("whole");
  counted.environment["HEARTH_CALL_LOG"] = tiny.d / "calls";
  REQUIRE(tiny.run(counted).code == 0);
  const Outcome expected = tiny.outcome("whole");
  const std::string log = read_file(tiny.d / "calls");
  const int64_t calls = std::count(log.begin(), log.end(), '\n');
  for (int i = 0; i < 16; ++i) {
    const std::string gone = i % 2 == 0 ? "run" : "run/state";
    const int64_t call = random.whole(calls / 20, calls);
    INFO(gone << " goes before call " << call << " of " << calls);
    const Start start = tiny.train("run");
    Start stopping = start;
    stopping.environment["HEARTH_KILL_AT"] = std::to_string(call);
    stopping.environment["HEARTH_KILL_BY"] = std::to_string(SIGSTOP);
    Process process(test_binary(), stopping);
    if (process.wait_for_stop()) fs::remove_all(tiny.d / gone);
    process.signal(SIGCONT);
    const Ended end = process.wait();
    INFO(end.err);
    REQUIRE(wrong_failure(end) == "");
    if (end.code == 4) CHECK(tiny.finish(start) == "");
    CHECK(tiny.outcome("run").root == expected.root);
    CHECK(tiny.outcome("run").model == expected.model);
    fs::remove_all(tiny.d / "run");
  }
}

}  // namespace
}  // namespace hearth::test
