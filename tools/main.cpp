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
#include "base/system.h"
#include "commands/command_line.h"
#include "commands/commands.h"
#include "commands/output.h"
#include "options/problems.h"
#include "options/setting_names.h"

namespace {

using hearth::ExitCode;

// A standard descriptor that the caller closed would be given to the next file that is opened, and
// what is printed would land in it. Opened the wrong way round, it fails as the closed one did.
void occupy_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

// After the results so far, also where both streams end in one file.
ExitCode report(ExitCode code, const std::string& message) {
  std::fflush(stdout);
  std::fprintf(stderr, "hearth: %s\n", message.c_str());
  return code;
}

ExitCode run(const std::vector<std::string>& arguments) {
  bool is_help = false;  // or the version
  try {
    const hearth::CommandLine line = hearth::parse_command_line(arguments);
    is_help = line.action != hearth::CommandLine::Action::run;
    const ExitCode code = hearth::run_command(line);
    hearth::flush_stdout();
    return code;
  } catch (const hearth::ConfigurationError& e) {
    for (const std::string& problem : e.problems()) report(e.code(), problem);
    return e.code();
  } catch (const hearth::ReaderGone&) {  // nobody reads a line about it: hearth train --help | head
    return is_help ? ExitCode::done : ExitCode::storage;
  } catch (const hearth::Error& e) {
    return report(e.code(), e.what());
  } catch (const std::bad_alloc&) {
    return report(
        ExitCode::storage,
        "out of memory: the system gives no more; lower --cpu-memory, --micro-batch or --seq-len");
  } catch (const std::exception& e) {
    return report(ExitCode::internal,
                  std::string("internal error (a bug), please report it: ") + e.what());
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
  return static_cast<int>(run(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc)));
}
