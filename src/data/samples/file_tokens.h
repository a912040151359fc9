// Reads a data file into a token store: from the cache, or tokenised by a pool of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/pool.h"
#include "data/rows/row_converter.h"
#include "data/samples/token_store.h"

namespace hearth {

/// The cache of tokenised rows between runs.
struct RowCacheOptions {
  std::string directory;                       // empty: no cache
  uint64_t most_bytes = 0;                     // limit for all entries; 0: no cache
  int64_t most_in_memory = int64_t{64} << 20;  // bytes per store; a larger one moves to disk
};

/// Callbacks while reading.
struct ReadingHooks {
  /// Reports `done` of `total` bytes (0: unknown) of the work `what`. Called often, from one
  /// thread.
  std::function<void(const std::string& what, uint64_t done, uint64_t total)> progress;
  /// Returns true to stop; reading then throws an error with code `stopped`.
  std::function<bool()> stop;
};

/// The rows of one file.
struct FileTokens {
  TokenStore store;
  std::vector<std::string> bad;  // rows that were skipped: "LINE: reason"
  Digest digest;                 // of the bytes of the file
};

/// Moves a store that is too large for memory to a file.
using PlaceFinder = std::function<void(TokenStore&)>;

class RowCache;

/// Reads data files one after the other. Rows and errors do not depend on the number of threads.
/// Warnings go to the log.
class FileTokenizer {
 public:
  /// The pool must outlive the tokenizer.
  FileTokenizer(const RowOptions& options, const RowCacheOptions& cache, const Pool& pool,
                ReadingHooks hooks);

  /// `path` may be "-". Skips bad rows with a warning, up to skip_bad_rows over all files.
  FileTokens read(const std::string& path);

 private:
  FileTokens read_through_cache(const RowCache& cache, const std::string& path);
  /// Converts the first row, so errors of the tokenizer or the format appear before the whole file
  /// is hashed.
  void try_first_row(const std::string& path) const;
  FileTokens read_once(const std::string& path);
  FileTokens tokenize(const std::string& path, const PlaceFinder& find_place);
  /// Skips a bad row with a warning; input error if that is one too many.
  void pass_over(const std::string& path, const std::string& note);
  void report(const std::string& what, uint64_t done, uint64_t total) const;

  RowOptions options_;
  RowCacheOptions cache_;
  const Pool& pool_;
  ReadingHooks hooks_;
  RowConverter converter_;
  std::optional<Digest> conversion_;  // conversion_key, computed when first needed
  int64_t bad_ = 0;                   // rows skipped so far
};

}  // namespace hearth
