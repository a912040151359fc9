// Faults of the file layer and of saves, planted by name (support/planted.h), with no code in the
// product. Makes the calls that a save with this fault would make, and passes all others on.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "support/layered_calls.h"

namespace hearth::test {

///   skip-sync-component, -manifest, -temporary, -temporary-result, -parent, -log, -config
///                            skips this sync (temporary: .tmp-step-*, parent: state/)
///   rename-before-sync       syncs a state's files and directory after its rename
///   publish-before-manifest  names a state before its manifest is written
///   manifest-before-data     syncs the components after the manifest
///   retention-before-commit  removes the oldest state before the new one has its name
///   trash-without-name       removes a state's files under its name
///   replace-existing-state   a rename replaces an existing state
///   ignore-short-write, ignore-failed-write, ignore-failed-close, ignore-failed-sync,
///   retry-failed-sync        handle these results wrongly
///   forget-lock              a lock always succeeds
///   truncate-log             opening a log empties it
///   no-torn-line-cut, cut-too-far   in cut_torn_line
///   leave-leftovers          removes nothing below .tmp-*
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

  std::mutex mutex_;  // for paths_, because a save runs on its own thread
  std::map<int, std::string> paths_;
  std::vector<std::string> postponed_;  // to sync later
  std::string early_from_, early_to_;   // a directory that has its new name already
};

}  // namespace hearth::test
