// Files in memory that record every change, so tests can try what a crash leaves
// (support/crash_states.h). Tens of thousands of saves take seconds.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/file_ops.h"

namespace hearth::test {

/// One change of a disk, or a sync. `node` and `child` are indices of nodes; names are in
/// directories.
struct DiskChange {
  enum class Kind { write, resize, link, move, erase, sync };
  Kind kind = Kind::sync;
  int node = 0;         // the file; for an entry, its directory
  uint64_t at = 0;      // offset of a write, or new size
  std::string data;     // written bytes
  std::string name;     // of the entry
  std::string to_name;  // new name of a move, in the same directory
  int child = 0;        // the entry's node
};

/// Serves everything below `root` (a path that need not exist); passes all else to the kernel.
/// Thread-safe. Locks always succeed.
class MemoryDisk : public FileCalls {
 public:
  struct Node {
    bool directory = false;
    std::shared_ptr<std::string> content;  // shared with other disks until changed
    std::map<std::string, int> entries;
  };

  explicit MemoryDisk(std::string root);
  /// A disk after a crash.
  MemoryDisk(std::string root, std::vector<Node> nodes);

  /// Makes everything durable, and clears the list of changes.
  void settle();
  /// Records a promise of the program from here on, for example that a step is saved.
  void promise(int what);
  /// The last promise after this many changes.
  int promised_at(size_t changes) const;

  const std::string& root() const { return root_; }
  const std::vector<DiskChange>& changes() const { return changes_; }
  /// The nodes at the last settle(), and empty nodes for those made since.
  std::vector<Node> durable_nodes() const;
  /// The disk after the first `changes` changes, synced or not: as a killed process leaves it.
  std::unique_ptr<MemoryDisk> killed_after(size_t changes) const;

  /// Applies a change to nodes.
  static void apply(std::vector<Node>& nodes, const DiskChange& change);
  static std::string& content_of(Node& node);

  int status(const char* path, bool follow_links, struct stat& status) override;
  int status_of(int fd, struct stat& status) override;
  int list(const char* path, std::vector<std::string>& names) override;
  int real_path(const char* path, std::string& real) override;
  int64_t free_bytes(const char* path) override;
  int touch(const char* path) override;
  int open(const char* path, int flags, unsigned mode) override;
  int64_t pread(int fd, void* buffer, size_t bytes, uint64_t offset) override;
  int64_t pwrite(int fd, const void* buffer, size_t bytes, uint64_t offset) override;
  int64_t append(int fd, const void* buffer, size_t bytes) override;
  int fallocate(int fd, uint64_t bytes) override;
  int truncate(int fd, uint64_t bytes) override;
  int sync(int fd) override;
  int close(int fd) override;
  int rename(const char* from, const char* to, bool replace) override;
  int mkdir(const char* path, unsigned mode) override;
  int unlink(const char* path) override;
  int rmdir(const char* path) override;
  int lock_exclusive(int fd) override;

 private:
  struct Place {
    int directory = -1;  // -1: not found
    std::string name;
    int node = -1;  // -1: no such entry
  };

  bool is_mine(const char* path) const;
  Place find(const std::string& path) const;
  int node_of(int fd) const;
  void change(DiskChange change);
  int add_node(bool directory, const Place& place);
  int remove(const char* path, bool directory);
  void fill(int node, struct stat& status) const;

  std::string root_;
  std::vector<Node> base_, nodes_;
  std::vector<DiskChange> changes_;
  std::vector<std::pair<size_t, int>> promises_;
  std::map<int, int> open_;  // by descriptor: node
  int next_descriptor_ = 1 << 20;
  mutable std::recursive_mutex mutex_;
};

}  // namespace hearth::test
