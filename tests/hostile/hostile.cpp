#include "hostile/hostile.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "base/file_ops.h"
#include "base/sanitized.h"
#include "support/test_paths.h"

namespace hearth::test {
namespace {

namespace fs = std::filesystem;

// Beyond a run that refuses at once: 100 ms and room for a busy machine; 64 MB, the longest row
// and what unpacks it. Then what is in proportion to the file, of which no more than 64 MiB are read before.
constexpr double kSeconds = 0.25;
constexpr uint64_t kBytes = 64'000'000;
constexpr uint64_t kRead = uint64_t{64} << 20;
constexpr double kSecondsAByteRead = 10e-9, kSecondsAByteHeld = 100e-9;  // as a JSON tree
constexpr uint64_t kBytesAByte = 8;

constexpr const char* kLfs =
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";

bool is_printable(std::string_view line) {
  return std::none_of(line.begin(), line.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// One line; of a configuration a line a problem, each as the first. Warnings may stand before it.
bool is_one_line(std::string_view text) {
  size_t lines = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == text.npos || !is_printable(text.substr(0, end))) return false;
    const bool warning = text.starts_with("warning: ") && lines == 0;
    if (!warning && !text.starts_with("hearth: ")) return false;
    lines += warning ? 0 : 1;
    text.remove_prefix(end + 1);
  }
  return lines > 0;
}

/// A run of one character says that a quotation was not cut.
size_t longest_run(const std::string& text) {
  size_t longest = 0, run = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    run = i > 0 && text[i] == text[i - 1] ? run + 1 : 1;
    longest = std::max(longest, run);
  }
  return longest;
}

/// What a run costs that refuses before it opens anything; `train` finds saved state once it has
/// planned, the machine measured, so here it refuses a state of nothing.
const Outcome& smallest_run(bool train) {
  static const auto outcome = [](const std::vector<std::string>& words, auto plant) {
    const Place place;
    plant(place);
    return run_in(place, words);
  };
  if (train) {
    static const Outcome planned =
        outcome({"train", "--quiet", "--threads", "1", "run.yaml"}, [](const Place& p) {
          std::filesystem::create_directories(p.path("run/state/step-00000001"));
        });
    return planned;
  }
  static const Outcome at_once = outcome(eval_words(), [](const Place& p) { p.remove("model"); });
  return at_once;
}

/// Bytes of all files, and those that the disk holds of them.
std::pair<uint64_t, uint64_t> file_bytes(const Place& place) {
  uint64_t total = 0, held = 0;
  for (const auto& entry : fs::recursive_directory_iterator(place.directory.path())) {
    struct stat status;
    if (::lstat(entry.path().c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
      total += static_cast<uint64_t>(status.st_size);
      held += static_cast<uint64_t>(status.st_blocks) * 512;
    }
  }
  return {total, held};
}

/// Of the whole program: printed at its end.
struct Figures {
  int64_t refused = 0, accepted = 0;
  double most_s = 0;  // beyond the smallest run, of places below 1 MiB
  uint64_t most_bytes = 0;
  std::string slowest, largest;

  ~Figures() {
    std::printf(
        "hostile input in all: %lld refused, %lld accepted; the most beyond a run that refuses at "
        "once: %.0f ms (%s), %.0f MiB (%s)\n",
        static_cast<long long>(refused), static_cast<long long>(accepted), 1e3 * most_s,
        slowest.c_str(), static_cast<double>(most_bytes) / (1 << 20), largest.c_str());
  }
};
Figures& figures() {
  static Figures all;
  return all;
}

/// The least CPU time of a few runs if the first took more than `most`: on a busy machine the same
/// work takes up to twice as long.
double least_cpu_s(double first, double most, const std::function<Outcome()>& again) {
  for (int i = 0; first > most && i < 4; ++i) first = std::min(first, again().cpu_s);
  return first;
}

void check_refusal(const Case& row, const Place& place, const Outcome& outcome, bool train,
                   const std::function<Outcome()>& again) {
  CHECK(outcome.code == row.code);
  CHECK(is_one_line(outcome.err));
  CHECK(outcome.err.size() < (row.code == 2 ? 16'000 : 1200));  // 2: many problems at once
  CHECK(longest_run(outcome.err) <= 200);
  CHECK(outcome.out.empty());
  for (const std::string& word : row.says) {
    INFO("lacks: " << word);
    CHECK(outcome.err.find(word) != std::string::npos);
  }
  ++figures().refused;
  if (kSanitized) return;
  const auto [bytes, held] = file_bytes(place);
  const auto read = static_cast<double>(std::min(bytes, kRead));
  const Outcome& least = smallest_run(train);
  const double most_s =
      kSeconds + read * kSecondsAByteRead + static_cast<double>(held) * kSecondsAByteHeld;
  const double cpu_s = least_cpu_s(outcome.cpu_s, least.cpu_s + most_s, again) - least.cpu_s;
  const uint64_t peak = outcome.peak_bytes - std::min(outcome.peak_bytes, least.peak_bytes);
  if (bytes < uint64_t{1} << 20) {
    if (cpu_s > figures().most_s) {
      figures().most_s = cpu_s;
      figures().slowest = row.name;
    }
    if (peak > figures().most_bytes) {
      figures().most_bytes = peak;
      figures().largest = row.name;
    }
  }
  CHECK(cpu_s <= most_s);
  CHECK(peak <= kBytes + held * kBytesAByte);
}

}  // namespace

Outcome run_in(const Place& place, const std::vector<std::string>& words,
               const std::string& input) {
  std::vector<char*> arguments{const_cast<char*>(test_binary())};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const TemporaryDirectory streams;
  const std::string out = streams / "out", err = streams / "err";
  const std::string in = input[0] == '/' ? input : place.path(input);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, in.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addchdir_np(&actions, place.directory.path().c_str());
  pid_t child = 0;
  ::setenv("HEARTH_RATES", "assumed", 1);  // a measurement takes what time it finds
  // The system counts the peak of this process as the child's until it has memory of its own; so
  // forget what a test needed to pack its files.
  std::ofstream("/proc/self/clear_refs") << "5";
  REQUIRE(posix_spawn(&child, test_binary(), &actions, nullptr, arguments.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);

  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  int status = 0;
  rusage usage = {};
  bool late = false;
  while (::wait4(child, &status, late ? 0 : WNOHANG, &usage) == 0) {
    if (Clock::now() > deadline) {
      late = true;
      ::kill(child, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  Outcome outcome;
  outcome.code = late ? 124 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = read_file(out);
  outcome.err = read_file(err);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  outcome.cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  outcome.peak_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  return outcome;
}

void run_table(const std::string& title, const std::vector<Case>& table,
               const std::vector<std::string>& words, const std::string& input) {
  size_t accepted = 0;
  for (const Case& row : table) {
    const Place place;
    row.plant(place);
    const auto run = [&] { return run_in(place, words, input); };
    const Outcome outcome = run();
    INFO(title << ": " << row.name << "\n" << outcome.err.substr(0, 2000));
    if (row.code == 0) {
      CHECK(outcome.code == 0);
      ++accepted;
      ++figures().accepted;
    } else {
      check_refusal(row, place, outcome, words[0] == "train", run);
    }
  }
  std::printf("%s: %zu refused, %zu accepted\n", title.c_str(), table.size() - accepted, accepted);
}

std::vector<Case> not_a_file(const std::string& file) {
  const std::string name = fs::path(file).filename().string();
  const auto with = [&](std::string_view bytes) {
    return [file, bytes = std::string(bytes)](const Place& place) { place.write(file, bytes); };
  };
  return {
      {"an un-pulled LFS pointer", with(kLfs), {name, "git lfs pull"}},
      {"a bare pickle", with(std::string_view("\x80\x02}q\x00.", 6)), {name, "pickle"}},
      {"torch's zip", with(std::string("PK\x03\x04") + std::string(400, '\0')), {name, "pickle"}},
      {"a FIFO", [=](const Place& p) { p.fifo(file); }, {name, "FIFO"}},
      {"a socket", [=](const Place& p) { p.socket(file); }, {name, "socket"}},
      {"a link to a device", [=](const Place& p) { p.link("/dev/zero", file); }, {name}},
      {"a directory",
       [=](const Place& p) {
         p.remove(file);
         fs::create_directory(p.path(file));
       },
       {name, "directory"}},
      {"a link to itself", [=](const Place& p) { p.link(name, file); }, {name}},
      {"a link to nothing", [=](const Place& p) { p.link("nowhere", file); }, {name}},
  };
}

std::vector<std::string> eval_words() {
  return {"eval",    "--quiet", "--json", "--threads", "1",
          "--model", "model",   "--data", "rows.jsonl"};
}

}  // namespace hearth::test
