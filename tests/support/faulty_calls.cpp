#include "support/faulty_calls.h"

#include <fcntl.h>

#include <cerrno>

#include "base/file_failure.h"
#include "base/planted.h"

namespace hearth::test {
namespace {

bool is_component(const std::string& path) { return path.ends_with(".safetensors"); }
bool is_manifest(const std::string& path) { return path.ends_with("/manifest.json"); }
bool is_temporary_state(const std::string& path) {
  return name_of_file(path).starts_with(".tmp-step-");
}
bool is_log(const std::string& path) { return path.ends_with(".jsonl"); }

bool skips_sync(const std::string& path) {
  return (is_component(path) && planted("skip-sync-component")) ||
         (is_manifest(path) && planted("skip-sync-manifest")) ||
         (is_temporary_state(path) && planted("skip-sync-temporary")) ||
         (path.ends_with("/.tmp-model") && planted("skip-sync-temporary-result")) ||
         (path.ends_with("/state") && planted("skip-sync-parent")) ||
         (is_log(path) && planted("skip-sync-log")) ||
         (name_of_file(path).starts_with(".tmp-config") && planted("skip-sync-config"));
}

int64_t believed(int64_t result, const char* fault, int64_t instead) {
  return result < 0 && result != -EINTR && planted(fault) ? instead : result;
}

}  // namespace

// The path that a file has in truth, where a directory was renamed early.
std::string FaultyCalls::moved(const std::string& path) const {
  if (early_from_.empty() || !path.starts_with(early_from_)) return path;
  return early_to_ + path.substr(early_from_.size());
}

std::string FaultyCalls::path_of(int fd) {
  const std::lock_guard lock(mutex_);
  const auto found = paths_.find(fd);
  return found == paths_.end() ? "" : found->second;
}

int FaultyCalls::status(const char* path, bool follow_links, struct stat& status) {
  return below_.status(moved(path).c_str(), follow_links, status);
}

int FaultyCalls::list(const char* path, std::vector<std::string>& names) {
  return below_.list(moved(path).c_str(), names);
}

int FaultyCalls::open(const char* path, int flags, unsigned mode) {
  const std::string name = path;
  const std::string folder = parent_of(name);
  if (is_manifest(name) && (flags & O_EXCL) != 0 && is_temporary_state(folder) &&
      planted("publish-before-manifest")) {
    early_from_ = folder;
    early_to_ = parent_of(folder) + "/" + name_of_file(folder).substr(5);
    below_.rename(early_from_.c_str(), early_to_.c_str(), false);
  }
  const int fd = below_.open(moved(name).c_str(), flags, mode);
  if (fd < 0) return fd;
  {
    const std::lock_guard lock(mutex_);
    paths_[fd] = name;
  }
  if ((flags & O_APPEND) != 0 && planted("truncate-log")) below_.truncate(fd, 0);
  return fd;
}

int64_t FaultyCalls::pwrite(int fd, const void* buffer, size_t bytes, uint64_t offset) {
  const int64_t n = below_.pwrite(fd, buffer, bytes, offset);
  const auto all = static_cast<int64_t>(bytes);
  if (n >= 0 && planted("ignore-short-write")) return all;
  return believed(n, "ignore-failed-write", all);
}

int64_t FaultyCalls::append(int fd, const void* buffer, size_t bytes) {
  const int64_t n = below_.append(fd, buffer, bytes);
  const auto all = static_cast<int64_t>(bytes);
  if (n >= 0 && planted("ignore-short-write")) return all;
  return believed(n, "ignore-failed-write", all);
}

int FaultyCalls::fallocate(int fd, uint64_t bytes) {
  return static_cast<int>(believed(below_.fallocate(fd, bytes), "ignore-failed-write", 0));
}

int FaultyCalls::truncate(int fd, uint64_t bytes) {
  if (is_log(path_of(fd)) && planted("no-torn-line-cut")) return 0;
  if (is_log(path_of(fd)) && bytes > 0 && planted("cut-too-far")) --bytes;
  return below_.truncate(fd, bytes);
}

int FaultyCalls::sync(int fd) {
  const std::string path = path_of(fd);
  if (skips_sync(path)) return 0;
  const bool in_state = is_temporary_state(path) || is_temporary_state(parent_of(path));
  if ((in_state && planted("rename-before-sync")) ||
      (is_component(path) && in_state && planted("manifest-before-data"))) {
    postponed_.push_back(path);
    return 0;
  }
  int result = below_.sync(fd);
  if (result < 0 && result != -EINTR && planted("retry-failed-sync")) result = below_.sync(fd);
  if (is_manifest(path) && planted("manifest-before-data")) {
    for (const std::string& late : postponed_) sync_now(late);
    postponed_.clear();
  }
  return static_cast<int>(believed(result, "ignore-failed-sync", 0));
}

int FaultyCalls::close(int fd) {
  {
    const std::lock_guard lock(mutex_);
    paths_.erase(fd);
  }
  return static_cast<int>(believed(below_.close(fd), "ignore-failed-close", 0));
}

void FaultyCalls::sync_now(const std::string& path) {
  const int fd = below_.open(path.c_str(), O_RDONLY, 0);
  if (fd < 0) return;
  below_.sync(fd);
  below_.close(fd);
}

void FaultyCalls::remove_oldest(const std::string& states, const std::string& kept) {
  std::vector<std::string> names;
  below_.list(states.c_str(), names);
  for (const std::string& name : names) {
    if (!name.starts_with("step-") || name == kept) continue;
    const std::string path = states + "/" + name;
    std::vector<std::string> files;
    below_.list(path.c_str(), files);
    for (const std::string& file : files) below_.unlink((path + "/" + file).c_str());
    below_.rmdir(path.c_str());
    return;
  }
}

int FaultyCalls::rename(const char* from, const char* to, bool replace) {
  if (early_from_ == from && early_to_ == to) {
    early_from_.clear();
    return 0;
  }
  const bool trash = name_of_file(to).starts_with(".trash-step-");
  if (trash && planted("trash-without-name")) {
    early_from_ = to;
    early_to_ = from;
    return 0;
  }
  const bool commit = is_temporary_state(from);
  if (commit && planted("retention-before-commit")) {
    remove_oldest(parent_of(to), name_of_file(to));
  }
  const int result = below_.rename(from, to, replace || planted("replace-existing-state"));
  if (commit) {
    for (const std::string& late : postponed_) {
      sync_now(late.starts_with(from) ? to + late.substr(std::string(from).size()) : late);
    }
    postponed_.clear();
  }
  return result;
}

int FaultyCalls::unlink(const char* path) {
  const std::string name = path;
  if (name.find("/.tmp-") != std::string::npos && planted("leave-leftovers")) return 0;
  return below_.unlink(moved(name).c_str());
}

int FaultyCalls::rmdir(const char* path) {
  const std::string name = path;
  if (name.find("/.tmp-") != std::string::npos && planted("leave-leftovers")) return 0;
  const int result = below_.rmdir(moved(name).c_str());
  if (early_from_ == name) early_from_.clear();
  return result;
}

int FaultyCalls::lock_exclusive(int fd) {
  const int result = below_.lock_exclusive(fd);
  return planted("forget-lock") ? 0 : result;
}

}  // namespace hearth::test
