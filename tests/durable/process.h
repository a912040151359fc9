// A program under supervision: started in surroundings of the test's choice, signalled, stopped and
// waited for. No process outlives its `Process`.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/temporary_directory.h"

namespace hearth::test {

/// What a started program finds of a standard stream.
enum class Stream {
  usual,   // stdin: /dev/null; stdout, stderr: kept
  closed,  // no descriptor
  broken,  // a pipe whose other end is closed
  full,    // /dev/full
};

struct Start {
  std::vector<std::string> words = {};                                 // arguments
  std::map<std::string, std::optional<std::string>> environment = {};  // nullopt: not set
  std::string directory = {};                       // to work in; empty: the test's
  std::vector<std::pair<int, rlim_t>> limits = {};  // RLIMIT_x, both soft and hard
  std::optional<mode_t> mask = {};
  Stream in = Stream::usual, out = Stream::usual, err = Stream::usual;
  bool nobody = false;  // runs as uid and gid 65534: needs root
};

struct Ended {
  int code = -1;  // 128 + signal when one ended it; -1: it took too long and was killed
  std::string out, err;
  double seconds = 0;
};

class Process {
 public:
  Process(const std::string& program, const Start& start);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Does nothing after the end.
  void signal(int number);
  bool running();
  /// Until a signal has stopped it (SIGSTOP): true; false where it ended instead.
  bool wait_for_stop();
  /// Until `condition` holds: true; false where the program ended first.
  bool wait_until(const std::function<bool()>& condition);
  Ended wait(double timeout_seconds = 120);

 private:
  bool reap(int flags);

  TemporaryDirectory printed_;
  double begin_ = 0;
  pid_t id_ = -1;
  std::optional<int> status_;  // as waitpid gives it
};

/// From start to end.
Ended run(const std::string& program, const Start& start);

/// Seconds of a clock that never goes back.
double now();

}  // namespace hearth::test
