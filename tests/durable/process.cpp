#include "durable/process.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <stdexcept>

#include "base/file_ops.h"

namespace hearth::test {
namespace {

constexpr int kNoStart = 127;

void or_die(bool ok) {
  if (!ok) ::_exit(kNoStart);
}

// In the child, between fork and exec.
void set_stream(int fd, Stream stream, const char* file) {
  if (stream == Stream::closed) {
    ::close(fd);
    return;
  }
  int from = -1;
  if (stream == Stream::broken) {
    int ends[2];
    or_die(::pipe(ends) == 0);
    ::close(ends[fd == STDIN_FILENO ? 1 : 0]);
    from = ends[fd == STDIN_FILENO ? 0 : 1];
  } else if (stream == Stream::full) {
    from = ::open("/dev/full", O_RDWR);
  } else if (fd == STDIN_FILENO) {
    from = ::open("/dev/null", O_RDONLY);
  } else {
    from = ::open(file, O_WRONLY | O_CREAT | O_APPEND, 0666);
  }
  or_die(from >= 0 && ::dup2(from, fd) == fd);
  ::close(from);
}

std::vector<std::string> environment_of(const Start& start) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!start.environment.contains(text.substr(0, text.find('=')))) all.push_back(text);
  }
  for (const auto& [name, value] : start.environment) {
    if (value) all.push_back(name + "=" + *value);
  }
  return all;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

std::string printed(const std::string& path) {
  return file_info(path).kind == FileKind::none ? "" : read_file(path);
}

}  // namespace

double now() {
  timespec time = {};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Process::Process(const std::string& program, const Start& start) : begin_(now()) {
  std::vector<std::string> words{program};
  words.insert(words.end(), start.words.begin(), start.words.end());
  const std::vector<std::string> environment = environment_of(start);
  const std::vector<char*> arguments = pointers(words), variables = pointers(environment);
  const std::string out = printed_ / "out", err = printed_ / "err";
  if (start.nobody) ::chmod(printed_.path().c_str(), 0777);
  // A signal that comes before exec is none for the handlers of the tests.
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  id_ = ::fork();
  if (id_ != 0) ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (id_ < 0) throw std::runtime_error("no process can be started");
  if (id_ > 0) return;

  for (const int stop : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP}) std::signal(stop, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (start.nobody) {
    or_die(::setgroups(0, nullptr) == 0 && ::setgid(65534) == 0 && ::setuid(65534) == 0);
  }
  set_stream(STDIN_FILENO, start.in, nullptr);
  set_stream(STDOUT_FILENO, start.out, out.c_str());
  set_stream(STDERR_FILENO, start.err, err.c_str());
  or_die(start.directory.empty() || ::chdir(start.directory.c_str()) == 0);
  if (start.mask) ::umask(*start.mask);
  for (const auto& [limit, value] : start.limits) {
    const rlimit both{value, value};
    or_die(::setrlimit(static_cast<__rlimit_resource>(limit), &both) == 0);
  }
  ::execve(program.c_str(), arguments.data(), variables.data());
  ::_exit(kNoStart);
}

Process::~Process() {
  signal(SIGKILL);
  reap(0);
}

// Whether it has ended. Of a process that was not waited for, the id is not given to another one.
bool Process::reap(int flags) {
  int status = 0;
  while (!status_) {
    const pid_t got = ::waitpid(id_, &status, flags);
    if (got == id_) {
      if (WIFSTOPPED(status)) return false;
      status_ = status;
    } else if (got == 0) {
      return false;
    } else if (errno != EINTR) {
      throw std::runtime_error("a started process is gone");
    }
  }
  return true;
}

void Process::signal(int number) {
  if (!status_) ::kill(id_, number);
}

bool Process::running() { return !reap(WNOHANG); }

bool Process::wait_for_stop() { return !reap(WUNTRACED); }

bool Process::wait_until(const std::function<bool()>& condition) {
  while (!condition()) {
    if (!running()) return condition();
    ::usleep(100);
  }
  return true;
}

Ended Process::wait(double timeout_seconds) {
  const double end = now() + timeout_seconds;
  while (running()) {
    if (now() > end) {
      signal(SIGKILL);
      reap(0);
      return {-1, printed(printed_ / "out"), printed(printed_ / "err"), now() - begin_};
    }
    ::usleep(300);
  }
  const double seconds = now() - begin_;
  const int code = WIFEXITED(*status_) ? WEXITSTATUS(*status_) : 128 + WTERMSIG(*status_);
  return {code, printed(printed_ / "out"), printed(printed_ / "err"), seconds};
}

Ended run(const std::string& program, const Start& start) { return Process(program, start).wait(); }

}  // namespace hearth::test
