// Runs the built program as a user does, and captures its output.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "base/file_ops.h"
#include "support/temporary_directory.h"

namespace hearth::test {

struct ProgramResult {
  int exit_code = -1;  // 128 + signal if a signal ended it
  std::string out;
  std::string err;
  uint64_t peak_bytes = 0;  // peak resident set; at least what the caller holds
};

/// `input`: its standard input.
inline ProgramResult run_program(const std::string& program, const std::vector<std::string>& words,
                                 const std::string& input = "") {
  const TemporaryDirectory directory;
  write_file_atomically(directory / "in", input);
  std::vector<char*> arguments{const_cast<char*>(program.c_str())};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  const std::string in = directory / "in", out = directory / "out", err = directory / "err";
  constexpr int kNew = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&files, 0, in.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, out.c_str(), kNew, 0600);
  posix_spawn_file_actions_addopen(&files, 2, err.c_str(), kNew, 0600);
  pid_t child = 0;
  // The system counts the peak of this process as the child's until it has memory of its own; so
  // forget what tests needed before.
  std::ofstream("/proc/self/clear_refs") << "5";
  const int failed =
      posix_spawn(&child, program.c_str(), &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) return {127, "", program + " cannot be started", 0};

  int status = 0;
  rusage usage = {};
  while (wait4(child, &status, 0, &usage) < 0) {
  }
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, read_file(out), read_file(err), static_cast<uint64_t>(usage.ru_maxrss) << 10};
}

}  // namespace hearth::test
