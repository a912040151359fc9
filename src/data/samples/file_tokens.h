// One data file to a token store: from the cache, or tokenised by a pool of threads.
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

/// Where tokenised rows are kept between runs.
struct RowCacheOptions {
  std::string directory;                       // empty: nowhere
  uint64_t most_bytes = 0;                     // of all entries; 0: nothing is kept
  int64_t most_in_memory = int64_t{64} << 20;  // bytes of rows; more go to a file at once
};

/// What reading takes part in.
struct ReadingHooks {
  /// `what` is under way: `done` of `total` bytes (0: not known). Called often, from one thread.
  std::function<void(const std::string& what, uint64_t done, uint64_t total)> progress;
  /// True asks to stop: reading ends with an error of the code `stopped`.
  std::function<bool()> stop;
};

/// The rows of one file.
struct FileTokens {
  TokenStore store;
  std::vector<std::string> bad;  // rows that were passed over: "LINE: reason"
  Digest digest;                 // of the bytes of the file
};

/// Gives a store that outgrew memory a file.
using PlaceFinder = std::function<void(TokenStore&)>;

class RowCache;

/// Reads data files one after the other. Rows, errors and totals do not depend on the number of
/// threads. Warnings go to the log.
class FileTokenizer {
 public:
  /// The pool is used while a file is read.
  FileTokenizer(const RowOptions& options, const RowCacheOptions& cache, const Pool& pool,
                ReadingHooks hooks);

  /// `path` may be "-". Bad rows are passed over while all files together have at most
  /// skip_bad_rows; each gets a warning.
  FileTokens read(const std::string& path);

 private:
  FileTokens read_through_cache(const RowCache& cache, const std::string& path);
  /// So that what no row can be read with, a tokenizer file or the data themselves, is refused before
  /// all of the data are hashed.
  void try_first_row(const std::string& path) const;
  FileTokens read_once(const std::string& path);
  FileTokens tokenize(const std::string& path, const PlaceFinder& find_place);
  /// Counts a bad row, with a warning; an input error where it is one too many.
  void pass_over(const std::string& path, const std::string& note);
  void report(const std::string& what, uint64_t done, uint64_t total) const;

  RowOptions options_;
  RowCacheOptions cache_;
  const Pool& pool_;
  ReadingHooks hooks_;
  RowConverter converter_;
  std::optional<Digest> conversion_;  // key, made when a file needs it
  int64_t bad_ = 0;                   // rows passed over so far
};

}  // namespace hearth
