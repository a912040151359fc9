// Faults of file content, planted by name (support/planted.h) when a file is opened. A program that
// ignores a key of a file behaves like a correct one that reads the file without the key.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "support/layered_calls.h"

namespace hearth::test {

///   sparse-step-from-the-front  config.json: layers 0, n, 2n have experts, not those before
///   b-scaled-twice              an adapter: B is doubled when it is read
///   expert-forgotten            an adapter: the pairs of expert 1 are missing
///   gate-up-swapped             an adapter: pairs of gate and up are swapped
///   one-too-few-kept            a save removes one old state too many
///   in a tokenizer.json, also inside a golden file: first-of-equal-pairs-counts,
///   unknown-tokens-always-fused, first-scheme-always, invert-ignored, single-words-anywhere,
///   white-space-of-rstrip-stays, template-behind-only
class FaultyFiles : public LayeredCalls {
 public:
  using LayeredCalls::LayeredCalls;

  int open(const char* path, int flags, unsigned mode) override;
  int status_of(int fd, struct stat& status) override;
  int64_t pread(int fd, void* buffer, size_t bytes, uint64_t offset) override;
  int close(int fd) override;
  int list(const char* path, std::vector<std::string>& names) override;
  int rename(const char* from, const char* to, bool replace) override;

 private:
  const std::string* changed(int fd);

  std::mutex mutex_;
  std::map<int, std::string> changed_;  // what an open file holds instead
  std::string saved_;                   // where a state got its name last
};

/// One over the kernel's calls.
FaultyFiles& faulty_files();

}  // namespace hearth::test
