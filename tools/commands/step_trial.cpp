#include "commands/step_trial.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>

#include "base/error.h"
#include "base/file_ops.h"
#include "base/stop.h"
#include "base/stopwatch.h"
#include "record/run_directory.h"

namespace hearth {
namespace {

constexpr uint64_t kMostLog = uint64_t{16} << 20;

/// What a trial has instead of the run's own options: nothing is saved, evaluated or traced.
constexpr std::array<std::pair<const char*, const char*>, 14> kReplaced{{{"resume", "\"auto\""},
                                                                         {"eval-every", "0"},
                                                                         {"eval-at-start", "false"},
                                                                         {"early-stopping", "0"},
                                                                         {"keep-best", "0"},
                                                                         {"load-best", "false"},
                                                                         {"samples", "0"},
                                                                         {"save-every", "0"},
                                                                         {"final-state", "false"},
                                                                         {"digest-every", "0"},
                                                                         {"trace", "null"},
                                                                         {"strict", "false"},
                                                                         {"verbose", "false"},
                                                                         {"quiet", "true"}}};

std::string yaml_of(const std::string& text) { return Json(text).dump(); }

std::string options_of(const StepTrial& trial, const std::string& out, const std::string& plan) {
  std::vector<TrainConfig::Recorded> options = trial.options;
  for (TrainConfig::Recorded& option : options) {
    for (const auto& [name, value] : kReplaced) {
      if (option.name == name) option.value = value;
    }
    if (option.name == "out") option.value = yaml_of(out);
    if (option.name == "plan") option.value = yaml_of(plan);
  }
  return config_yaml(options);
}

/// The child: never returns. Only calls that may follow a fork in a program with threads.
[[noreturn]] void become(char* const* arguments, const char* log, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it ended before
  const int null = open("/dev/null", O_RDWR);
  const int file = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (null < 0 || file < 0) _exit(127);
  dup2(null, 0);
  dup2(null, 1);
  dup2(file, 2);
  execv("/proc/self/exe", arguments);
  _exit(127);
}

/// `time_s` of the whole lines of metrics.jsonl.
std::vector<double> seconds_in(const std::string& path) {
  std::vector<double> seconds;
  if (file_info(path).kind != FileKind::regular) return seconds;
  const std::string text = read_file(path, kMostLog);
  for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    const Json line = parse_json(text.substr(begin, end - begin), path);
    const Json* time = line.find("time_s");
    if (time != nullptr && time->is_number()) seconds.push_back(time->as_double());
  }
  return seconds;
}

std::string last_line(const std::string& path) {
  if (file_info(path).kind != FileKind::regular) return "";
  std::string text = read_file(path, kMostLog);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

TrialFolder::TrialFolder() {
  const char* given = std::getenv("TMPDIR");
  const std::string base =
      std::string(given != nullptr && given[0] == '/' ? given : "/tmp") + "/hearth-tune-";
  std::random_device random;
  do {
    path_ = base + std::to_string(getpid()) + "-" + std::to_string(random());
  } while (file_info(path_).kind != FileKind::none);
  make_directory(path_);
}

TrialFolder::~TrialFolder() {
  try {
    remove_tree(path_);
  } catch (const Error&) {  // nothing more can be done
  }
}

TrialTimes run_trial(const TrialFolder& folder, const std::string& name, const StepTrial& trial,
                     int steps, double limit_s) {
  const std::string base = folder.path() + "/" + name, log = base + ".log";
  const std::string out = base, config = base + ".yaml", plan = base + ".json";
  write_file_atomically(plan, trial.plan.dump() + "\n");
  write_file_atomically(config, options_of(trial, out, plan));
  std::array<std::string, 3> words{"hearth", "train", config};
  std::array<char*, 4> arguments{words[0].data(), words[1].data(), words[2].data(), nullptr};
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw storage_error("a process cannot be started");
  if (child == 0) become(arguments.data(), log.c_str(), parent);
  setpgid(child, child);  // in case the child has not come so far

  const Stopwatch watch;
  TrialTimes times;
  bool ended = false;
  const std::string metrics = out + "/metrics.jsonl";
  while (!ended && stop_signal() == 0 && watch.seconds() < limit_s &&
         std::ssize(times.seconds) < steps) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    siginfo_t info{};
    ended = waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid != 0;
    times.seconds = seconds_in(metrics);
  }
  kill(-child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (std::ssize(times.seconds) > steps) times.seconds.resize(static_cast<size_t>(steps));
  if (ended && std::ssize(times.seconds) < steps) times.failure = last_line(log);
  return times;
}

}  // namespace hearth
