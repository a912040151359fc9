// Tokenised rows of data files, kept below the user's cache directory for the next start.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/file_ops.h"
#include "base/hash.h"
#include "data/samples/token_store.h"

namespace hearth {

/// XDG_CACHE_HOME, else .cache in HOME, with /hearth/rows; empty where neither is an absolute path.
std::string row_cache_directory();

/// A folder of entries KEY.rows (token stores as files), each the rows of one data file under one
/// key. Entries appear by one rename, whole, and never change. Processes may share the folder: who
/// makes an entry holds a lock of its key (.lock-NN, which stay), and writes .tmp-KEY beside it.
/// Entries may vanish at any time; who has one open keeps reading it.
class RowCache {
 public:
  /// Makes the folder, for its user alone, and removes what killed processes left in it. Storage
  /// errors.
  RowCache(std::string directory, uint64_t most_bytes);

  /// The entry of a key, checked as a whole and marked as used. Nullopt where there is none; one that
  /// is damaged is removed, with a warning.
  std::optional<TokenStore::Opened> find(const Digest& key, int64_t limit,
                                         int64_t vocabulary) const;

  /// The right to make an entry. Waits while another process has it: calls `wait` (which may throw)
  /// several times a second.
  std::unique_ptr<FileLock> lock(const Digest& key, const std::function<void()>& wait) const;

  // With the lock held:
  /// Lets the store write into a new file.
  void begin(const Digest& key, TokenStore& store) const;
  /// Completes the file and publishes it, then removes the entries that were not used for the longest
  /// time until the folder holds at most most_bytes. A store that is larger by itself is not kept:
  /// false; it stays readable.
  bool publish(const Digest& key, TokenStore& store, const std::string& notes) const;
  /// Removes what an attempt left.
  void abandon(const Digest& key) const;

 private:
  std::string path_of(const Digest& key) const;
  std::string temporary_of(const Digest& key) const;
  std::string lock_of(const std::string& hex) const;
  void clean() const;
  void evict(const std::string& kept) const;

  std::string directory_;
  uint64_t most_bytes_;
};

/// Lets a store write into a file that has no name any more: nothing stays of it, however the process
/// ends. In the first of the directories that takes it; a storage error if none does.
void move_to_nameless_file(TokenStore& store, const std::vector<std::string>& directories);

}  // namespace hearth
