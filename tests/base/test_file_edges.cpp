// What file operations do at the edges: odd paths, results that are rare, systems that lack a call.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <thread>

#include "base/error.h"
#include "base/file_failure.h"
#include "base/file_ops.h"
#include "base/file_times.h"
#include "support/failing_calls.h"
#include "support/raises.h"
#include "support/temporary_directory.h"

using namespace hearth;
using namespace hearth::test;

namespace {

/// Fails the first call of an action.
struct FirstFails {
  FailingCalls calls;
  FileCallsOverride guard{calls};
  explicit FirstFails(int error) {
    calls.fail_at = 1;
    calls.error = error;
  }
};

/// Writes that move nothing and tell no error.
class IdleWrites : public FileCalls {
 public:
  int64_t pwrite(int, const void*, size_t, uint64_t) override { return 0; }
  int64_t append(int, const void*, size_t) override { return 0; }
};

/// Makes renameat2 fail, for the thread that calls this, as where a file system lacks its flags.
bool forget_renameat2() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),  // the number of the call
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {4, program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

}  // namespace

TEST_CASE("paths are split as dirname and basename do") {
  struct Case {
    std::string path, parent, name;
  };
  for (const Case& c : std::vector<Case>{{"", ".", ""},
                                         {"/", "/", ""},
                                         {"//", "/", ""},
                                         {"a", ".", "a"},
                                         {"a/", ".", "a"},
                                         {"/a", "/", "a"},
                                         {"//a//", "/", "a"},
                                         {"a/b", "a", "b"},
                                         {"/a//b/", "/a", "b"}}) {
    INFO("'" << c.path << "'");
    CHECK(parent_of(c.path) == c.parent);
    CHECK(name_of_file(c.path) == c.name);
  }
}

TEST_CASE("names that no file can have are refused, and unknown reasons told") {
  for (const std::string& path : {std::string(300, 'a'), "/" + std::string(300, 'a') + "/b"}) {
    CHECK(raised_by([&] { file_info(path); }).says("no file can have a name that is so long"));
  }
  CHECK(file_failure("x", "open", -ENOENT) == "x: cannot open: No such file or directory");
  CHECK(file_failure("x", "open", -100000) == "x: cannot open: unknown error");
}

TEST_CASE("links that lead nowhere, and what is neither file nor directory") {
  const TemporaryDirectory directory;
  for (const char* target : {"missing", "link"}) {  // the second leads to itself
    remove_file(directory / "link");
    REQUIRE(symlink(target, (directory / "link").c_str()) == 0);
    CHECK(file_info(directory / "link").is_link);
    CHECK(file_info(directory / "link").kind == FileKind::none);
    CHECK(raised_by([&] { real_path(directory / "link"); }).code == ExitCode::input);
  }
  CHECK(real_path(directory / "../") == real_path(real_path(directory.path()) + "/.."));
  CHECK(file_info("/dev/null").kind == FileKind::other);
  CHECK(file_info("/dev/null/x").kind == FileKind::none);

  const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string name = directory / "socket";
  REQUIRE(name.copy(address.sun_path, sizeof address.sun_path - 1) == name.size());
  REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  ::close(listener);
  CHECK(raised_by([&] { InputFile file(name); }).says("a socket"));
}

TEST_CASE("a directory that another process makes at the same time is no error") {
  const TemporaryDirectory directory;
  const std::string there = directory / "there";
  make_directory(there);
  for (const auto make : {make_directory, make_private_directory}) {
    {
      const FirstFails seen_as_missing(ENOENT);
      CHECK_NOTHROW(make(there));
      CHECK(seen_as_missing.calls.failed());
    }
    {
      const FirstFails seen_as_missing(ENOENT);
      CHECK_NOTHROW(make("/"));  // which has no parent to make
    }
    write_file_atomically(directory / "file", "x");
    CHECK(raised_by([&] { make(directory / "file"); }).says("cannot make the directory"));
    CHECK(raised_by([&] { make("/proc/none/x"); }).code == ExitCode::storage);
  }
  make_private_directory(directory / "a/b");
  struct stat status;
  REQUIRE(::stat((directory / "a").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
}

TEST_CASE("directories are made below the one the process is in") {
  const TemporaryDirectory directory;
  const int before = ::open(".", O_RDONLY | O_DIRECTORY);
  REQUIRE(::chdir(directory.path().c_str()) == 0);
  make_directory("a");
  make_private_directory("b");
  REQUIRE(::fchdir(before) == 0);
  ::close(before);
  CHECK(list_directory(directory.path()) == std::vector<std::string>{"a", "b"});
}

TEST_CASE("calls that fail in rare ways end with a reason") {
  const TemporaryDirectory directory;
  const std::string file = directory / "file", other = directory / "other";
  write_file_atomically(file, "text");
  CHECK(raised_by([&] { free_bytes(directory / "none"); }).code == ExitCode::storage);
  CHECK(modified_time(directory / "none") == 0);
  CHECK(modified_time(file) > 0);
  CHECK_FALSE(touch_file(directory / "none"));
  {
    const FirstFails too_long(ENAMETOOLONG);  // of a file system with shorter names
    CHECK(raised_by([&] { InputFile input(file); }).code == ExitCode::input);
  }
  {
    const FirstFails no_permission(EACCES);
    CHECK(raised_by([&] { InputFile input(file); }).code == ExitCode::storage);
  }
  {
    FailingCalls calls;
    calls.fail_at = 2;  // behind open
    const FileCallsOverride guard(calls);
    CHECK(raised_by([&] { FileLock lock(other, "it"); }).says("cannot lock"));
  }
  IdleWrites idle;
  const FileCallsOverride guard(idle);
  OutputFile output(directory / "output");
  output.reserve(0);
  CHECK(raised_by([&] { output.write("a", 1); }).says("cannot write: Input/output error"));
  AppendFile log(directory / "log");
  CHECK(raised_by([&] { log.line("a"); }).says("cannot write: Input/output error"));
}

TEST_CASE("a lock whose file another process removes or replaces meanwhile is taken anew") {
  /// The process that held it goes, and removes it, between the open and the lock of this one;
  /// `replaced`: another one has made it again.
  class Removed : public FileCalls {
   public:
    Removed(std::string path, bool replaced) : path_(std::move(path)), replaced_(replaced) {}
    int lock_exclusive(int fd) override {
      if (locks_++ == 0) {
        FileCalls::unlink(path_.c_str());
        if (replaced_) FileCalls::close(FileCalls::open(path_.c_str(), O_RDWR | O_CREAT, 0666));
      }
      return FileCalls::lock_exclusive(fd);
    }
    int locks() const { return locks_; }

   private:
    std::string path_;
    bool replaced_;
    int locks_ = 0;
  };
  for (const bool replaced : {false, true}) {
    const TemporaryDirectory directory;
    const std::string path = directory / ".lock";
    Removed calls(path, replaced);
    const FileCallsOverride guard(calls);
    const FileLock lock(path, "it");
    CHECK(calls.locks() == 2);
    CHECK(raised_by([&] { FileLock second(path, "it"); }).code == ExitCode::usage);
  }
}

TEST_CASE("a kernel without fallocate is no error") {
  const TemporaryDirectory directory;
  OutputFile file(directory / "file");
  const FirstFails missing(ENOSYS);
  CHECK_NOTHROW(file.reserve(1000));
  CHECK(missing.calls.failed());
}

TEST_CASE("an input file can be moved") {
  const TemporaryDirectory directory;
  write_file_atomically(directory / "file", "text");
  InputFile first(directory / "file");
  const InputFile second(std::move(first));
  char text[4];
  second.read(text, 4, 0);
  CHECK(std::string(text, 4) == "text");
}

TEST_CASE("without a rename that keeps what is there, the target is looked for") {
  const TemporaryDirectory directory;
  write_file_atomically(directory / "a", "a");
  write_file_atomically(directory / "b", "b");
  bool forgotten = false;
  Raised onto_other, onto_new, of_missing;
  std::thread([&] {
    forgotten = forget_renameat2();
    onto_other = raised_by([&] { rename_no_replace(directory / "a", directory / "b"); });
    onto_new = raised_by([&] { rename_no_replace(directory / "a", directory / "c"); });
    of_missing = raised_by([&] { rename_no_replace(directory / "none", directory / "d"); });
  }).join();
  if (!forgotten) SKIP("no seccomp on this machine");
  CHECK(onto_other.says("File exists"));
  CHECK(onto_new.code == ExitCode::done);
  CHECK(of_missing.code == ExitCode::storage);
  CHECK(read_file(directory / "b") == "b");
  CHECK(read_file(directory / "c") == "a");
}
