// hearth: the program. Errors become one line on stderr and an exit code (docs/errors.md).
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/error_format.h"
#include "base/system.h"
#include "comm/launch.h"
#include "commands/command_line.h"
#include "commands/commands.h"
#include "commands/output.h"
#include "commands/target_problems.h"
#include "options/problems.h"
#include "options/setting_names.h"

namespace {

using hearth::ExitCode;
using hearth::RankEnding;

// A standard descriptor that the caller closed would be given to the next file that is opened, and
// what is printed would land in it. Opened the wrong way round, it fails as the closed one did.
void occupy_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

// After the results so far, also where both streams end in one file.
void report(const RankEnding& ending) {
  std::fflush(stdout);
  for (const std::string& line : ending.lines) std::fprintf(stderr, "hearth: %s\n", line.c_str());
}

// A command that one process runs, where a launcher started several: each would print the same, or
// write the same files.
hearth::Error too_many_processes(const std::string& command, const hearth::Launch& launch) {
  return hearth::usage_error(
      "{}: runs as one process, but a launcher started {}; start it without mpirun or srun",
      command, launch.ranks);
}

// `launched`: this process as one of several that run the command together, or null.
RankEnding run(const std::vector<std::string>& arguments, const hearth::Launch& launch,
               hearth::LaunchedRanks* launched) {
  bool is_help = false;  // or the version
  hearth::CommandLine line;
  try {
    line = hearth::parse_command_line(arguments);
    is_help = line.action != hearth::CommandLine::Action::run;
    if (is_help && launch.rank > 0) return {};
    if (!is_help && launch.ranks > 1 && launched == nullptr) {
      throw too_many_processes(arguments[0], launch);
    }
    const ExitCode code = hearth::run_command(line, launched);
    hearth::flush_stdout();
    return {code, {}};
  } catch (const hearth::ConfigurationError& e) {
    return {e.code(), e.problems()};
  } catch (const hearth::ReaderGone&) {  // nobody reads a line about it: hearth train --help | head
    return {is_help ? ExitCode::done : ExitCode::storage, {}};
  } catch (const hearth::Error& e) {
    return {e.code(), hearth::lines_of_error(line, e)};
  } catch (const std::bad_alloc&) {
    return {ExitCode::storage,
            {"out of memory: the system gives no more; lower --cpu-memory, --micro-batch or "
             "--seq-len"}};
  } catch (const std::exception& e) {
    return {ExitCode::internal,
            {std::string("internal error (a bug), please report it: ") + e.what()}};
  }
}

// Whether the processes of a launch run it together.
bool is_of_ranks(const std::string& command) {
  return command == "train" || command == "plan" || command == "profile" || command == "doctor";
}

// One of several processes: what ends all of them, one reports.
ExitCode run_launched(const std::vector<std::string>& arguments, const hearth::Launch& launch) {
  const std::string command = arguments.empty() ? "" : arguments[0];
  if (!is_of_ranks(command)) {
    const RankEnding ending = run(arguments, launch, nullptr);
    if (launch.rank == 0) report(ending);
    return ending.code;
  }
  try {
    hearth::LaunchedRanks ranks(launch);
    const RankEnding ending = run(arguments, launch, &ranks);
    const bool failed = ending.code != ExitCode::done && !ranks.has_started();
    const RankEnding joint = failed ? ranks.end_before_start(ending) : ending;
    report(joint);  // before the others leave: the launcher ends all that are left then
    return joint.code;
  } catch (const hearth::Error& e) {  // the ranks did not meet
    if (launch.rank == 0) report({e.code(), {e.what()}});
    return e.code();
  }
}

}  // namespace

int main(int argc, char** argv) {
  hearth::limit_allocator();
  hearth::spell_settings_by(hearth::flag_of);
  occupy_standard_descriptors();
  // A full file system and a reader that went away are errors of a write, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  const hearth::Launch launch = hearth::launch_of_process();
  if (launch.ranks > 1) return static_cast<int>(run_launched(arguments, launch));
  const RankEnding ending = run(arguments, launch, nullptr);
  report(ending);
  return static_cast<int>(ending.code);
}
