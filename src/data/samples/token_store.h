// The tokens of all rows of a data file: a small index in memory, and the rows' words (row_words.h)
// in memory or in a file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file_ops.h"
#include "base/hash.h"
#include "data/samples/row_words.h"

namespace hearth {

/// Rows ("documents") in the order they were added. Immutable after finish(), so threads may share
/// it. Takes 12.1 bytes per row, 4 more until write_footer, and the words if they are in memory.
class TokenStore {
 public:
  /// Stores whole rows, but returns them cut to `limit` ids (0: whole).
  explicit TokenStore(int64_t limit = 0);

  /// Appends a row of at least one id. Labels are not shifted. `line`: its line in the file, for
  /// messages.
  void add(std::span<const int32_t> ids, std::span<const int32_t> labels, int64_t line = 0);

  /// Whether some row was a text or a chat, not input_ids.
  void set_encoded() { encoded_ = true; }
  bool encoded() const { return encoded_; }

  int64_t rows() const { return static_cast<int64_t>(index_.size()); }
  int64_t length(int64_t row) const { return std::min(index_[row].length, limit_); }
  int64_t whole_length(int64_t row) const { return index_[row].length; }
  int64_t trained(int64_t row) const { return index_[row].trained; }
  /// Trained targets of the rows before a cut.
  int64_t whole_trained_tokens() const { return whole_trained_; }

  /// The first row that is longer than the limit.
  struct LongRow {
    int64_t line, length;
  };
  const std::optional<LongRow>& first_long_row() const { return long_row_; }

  /// Appends ids and labels of a row. Thread-safe. Storage error if the file cannot be read.
  void read(int64_t row, std::vector<int32_t>& ids, std::vector<int32_t>& labels) const;

  /// Bytes in memory, spare capacity included.
  int64_t bytes() const;

  /// Moves the words to a file, and writes later words there. `out` is at the beginning of the
  /// file; `in` is opened on the same file. A storage error leaves the store unusable.
  void move_to_file(std::unique_ptr<OutputFile> out, InputFile in);
  bool in_file() const { return in_.has_value(); }
  /// Call after the last row. Frees spare memory.
  void finish();

  /// Writes index, notes (any text) and footer, then syncs and closes the file, so `open` can read
  /// it. Call once, after finish(). store_file.cpp describes the layout.
  void write_footer(const Digest& key, const std::string& notes);
  /// Opens a store from such a file, after it has read and verified all of it. Input error if the
  /// content is damaged or the key differs.
  struct Opened;
  static Opened open(const std::string& path, const Digest& key, int64_t limit, int64_t vocabulary);

 private:
  struct Entry {
    uint32_t length;   // ids, uncut
    uint32_t runs;     // run words before them
    uint32_t trained;  // trained targets, after the cut
  };
  void append(const Entry& entry, uint32_t whole_trained, int64_t line);
  uint64_t begin(int64_t row) const;  // index of its first word
  void flush();

  uint32_t limit_;
  std::vector<Entry> index_;
  std::vector<uint64_t> marks_;  // begin of every 64th row
  uint64_t end_ = 0;             // total words of all rows
  int64_t whole_trained_ = 0;
  std::optional<LongRow> long_row_;
  bool encoded_ = false;

  std::vector<uint32_t> words_;  // all words, or the words not yet in the file
  uint64_t in_file_ = 0;         // words in the file
  std::optional<InputFile> in_;
  // Used while the file is written:
  std::unique_ptr<OutputFile> out_;
  Hasher hasher_;  // of the words in the file
  std::vector<uint32_t> lines_;
};

struct TokenStore::Opened {
  TokenStore store;
  std::string notes;
};

}  // namespace hearth
