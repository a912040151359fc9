// The tokens of all rows of a data file: a small index in memory, the words of the rows
// (row_words.h) in memory or in a file that is read in pieces. What the sampler cuts batches from.
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

/// Rows ("documents") in the order they were added. Not changed after reading, so that threads may
/// share it. In memory: 12.1 bytes a row, and the words where they lie in memory.
class TokenStore {
 public:
  /// Rows are given cut to `limit` ids (0: whole); they are kept whole.
  explicit TokenStore(int64_t limit = 0);

  /// Appends a row of at least one id; labels stand beside their own ids, not yet shifted. `line`
  /// is where it stands in its file, for messages.
  void add(std::span<const int32_t> ids, std::span<const int32_t> labels, int64_t line = 0);

  /// Some row is a text or a chat: not all of them are input_ids rows.
  void set_encoded() { encoded_ = true; }
  bool encoded() const { return encoded_; }

  int64_t rows() const { return static_cast<int64_t>(index_.size()); }
  int64_t length(int64_t row) const { return std::min(index_[row].length, limit_); }
  int64_t whole_length(int64_t row) const { return index_[row].length; }
  int64_t trained(int64_t row) const { return index_[row].trained; }
  /// Labels that count of the whole rows, cut or not.
  int64_t whole_trained_tokens() const { return whole_trained_; }

  /// The first row that is longer than the limit.
  struct LongRow {
    int64_t line, length;
  };
  const std::optional<LongRow>& first_long_row() const { return long_row_; }

  /// Appends ids and labels of a row. Threads may read at once. A storage error where the file
  /// cannot be read.
  void read(int64_t row, std::vector<int32_t>& ids, std::vector<int32_t>& labels) const;

  /// Bytes that it holds in memory, spare capacity included.
  int64_t bytes() const;

  /// From here on words go to a file: `out` at its beginning, `in` opened on the same one. What is in
  /// memory moves there. Storage errors of `out` leave the store unusable.
  void move_to_file(std::unique_ptr<OutputFile> out, InputFile in);
  bool in_file() const { return in_.has_value(); }
  /// After the last row: nothing more is added, spare memory is given back.
  void finish();

  /// Completes the file so that `open` reads it: index, notes (any text) and footer; synced and
  /// closed. Once, after finish(). The layout stands in store_file.cpp.
  void write_footer(const Digest& key, const std::string& notes);
  /// A store that lies in such a file, all of it read once and checked. Input error where anything
  /// is not as it was written, or the key is another one.
  struct Opened;
  static Opened open(const std::string& path, const Digest& key, int64_t limit, int64_t vocabulary);

 private:
  struct Entry {
    uint32_t length;   // ids, uncut
    uint32_t runs;     // words of labels before them
    uint32_t trained;  // labels that count, of the row as it is given
  };
  void append(const Entry& entry, uint32_t whole_trained, int64_t line);
  uint64_t begin(int64_t row) const;  // of its words
  void flush();

  uint32_t limit_;
  std::vector<Entry> index_;
  std::vector<uint64_t> marks_;  // begin of every 64th row
  uint64_t end_ = 0;             // of the words of all rows
  int64_t whole_trained_ = 0;
  std::optional<LongRow> long_row_;
  bool encoded_ = false;

  std::vector<uint32_t> words_;  // in memory: all, or those that are not in the file yet
  uint64_t in_file_ = 0;         // words in the file
  std::optional<InputFile> in_;
  // While it is written:
  std::unique_ptr<OutputFile> out_;
  Hasher hasher_;  // of the words in the file
  std::vector<uint32_t> lines_;
};

struct TokenStore::Opened {
  TokenStore store;
  std::string notes;
};

}  // namespace hearth
