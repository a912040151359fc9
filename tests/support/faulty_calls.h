// Faults of the file layer and of how a save uses it, planted by name (support/planted.h) without a
// line in the product: the calls that a save with that fault would make. Without a fault planted all
// is passed on.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "support/layered_calls.h"

namespace hearth::test {

///   skip-sync-component, -manifest, -temporary, -temporary-result, -parent, -log, -config
///                            that sync is left out (temporary: .tmp-step-*, parent: state/)
///   rename-before-sync       a state's files and directory are synced after its rename
///   publish-before-manifest  a state has its name before its manifest is written
///   manifest-before-data     the components are synced after the manifest
///   retention-before-commit  the oldest state goes before the new one has its name
///   trash-without-name       a state's files are removed under its name
///   replace-existing-state   a rename replaces what is there
///   ignore-short-write, ignore-failed-write, ignore-failed-close, ignore-failed-sync,
///   retry-failed-sync        results that are not believed
///   forget-lock              a lock is always given
///   truncate-log             a log is cut to nothing when it is opened
///   no-torn-line-cut, cut-too-far   of cut_torn_line
///   leave-leftovers          nothing below .tmp-* is removed
class FaultyCalls : public LayeredCalls {
 public:
  using LayeredCalls::LayeredCalls;

  int status(const char* path, bool follow_links, struct stat& status) override;
  int list(const char* path, std::vector<std::string>& names) override;
  int open(const char* path, int flags, unsigned mode) override;
  int64_t pwrite(int fd, const void* buffer, size_t bytes, uint64_t offset) override;
  int64_t append(int fd, const void* buffer, size_t bytes) override;
  int fallocate(int fd, uint64_t bytes) override;
  int truncate(int fd, uint64_t bytes) override;
  int sync(int fd) override;
  int close(int fd) override;
  int rename(const char* from, const char* to, bool replace) override;
  int unlink(const char* path) override;
  int rmdir(const char* path) override;
  int lock_exclusive(int fd) override;

 private:
  std::string moved(const std::string& path) const;
  void sync_now(const std::string& path);
  void remove_oldest(const std::string& states, const std::string& kept);

  std::string path_of(int fd);

  std::mutex mutex_;  // of paths_: a save runs on a thread of its own
  std::map<int, std::string> paths_;
  std::vector<std::string> postponed_;  // paths to sync later
  std::string early_from_, early_to_;   // a directory that has its new name already
};

}  // namespace hearth::test
