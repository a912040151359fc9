// The cache of tokenised rows, in the user's cache directory.
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

/// $XDG_CACHE_HOME/hearth/rows, else $HOME/.cache/hearth/rows; empty if neither is an absolute
/// path.
std::string row_cache_directory();

/// A folder of token stores KEY.rows, one per data file and key. A rename publishes an entry; then
/// it never changes. Processes may share the folder. A writer holds the lock of the key (.lock-NN,
/// never removed) and writes .tmp-KEY. Entries may be removed at any time; a process that has one
/// open keeps reading it.
class RowCache {
 public:
  /// Makes the folder, private to the user, and removes leftovers of killed processes. Throws
  /// storage errors.
  RowCache(std::string directory, uint64_t most_bytes);

  /// Opens the entry of a key, verifies all of it, and marks it as used. Nullopt if there is none.
  /// Removes a damaged entry, with a warning.
  std::optional<TokenStore::Opened> find(const Digest& key, int64_t limit,
                                         int64_t vocabulary) const;

  /// Locks a key for writing. While another process holds the lock, calls `wait` (which may throw)
  /// several times per second.
  std::unique_ptr<FileLock> lock(const Digest& key, const std::function<void()>& wait) const;

  // The next three functions need the lock:
  /// Makes the store write into a new file.
  void begin(const Digest& key, TokenStore& store) const;
  /// Completes and publishes the file, then removes the least recently used entries until the
  /// folder holds at most most_bytes. False if the store itself is larger: it is not kept, but
  /// stays readable.
  bool publish(const Digest& key, TokenStore& store, const std::string& notes) const;
  /// Removes the file of a failed attempt.
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

/// Moves a store into an unlinked file, which disappears when the process ends. Uses the first
/// directory that works; storage error if none does.
void move_to_nameless_file(TokenStore& store, const std::vector<std::string>& directories);

}  // namespace hearth
