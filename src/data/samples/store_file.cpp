// A token store as a file. Little endian, without padding:
//
//   words of all rows    4 bytes each (row_words.h)
//   index                12 bytes a row: ids, words of runs, line in the data file
//   notes                text
//   footer               128 bytes: magic, version, key, sizes, XXH3 of each part and of itself
//
// The footer stands at the end because the file is written once from front to back.
#include <array>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "data/samples/token_store.h"

namespace hearth {
namespace {

struct Footer {
  uint64_t magic = 0x53574f5248545248;  // "HRTHROWS"
  uint64_t version = 1;
  Digest key;
  uint64_t rows = 0, words = 0, notes_bytes = 0;
  uint64_t encoded = 0;  // 1: some row is not of input_ids
  Digest words_digest, index_digest, notes_digest, own_digest;
};
static_assert(sizeof(Footer) == 128 && std::is_trivially_copyable_v<Footer>);

struct IndexEntry {
  uint32_t length, runs, line;
};
static_assert(sizeof(IndexEntry) == 12);

constexpr size_t kIndexPiece = size_t{1} << 16;       // entries
constexpr uint64_t kPieceBytes = uint64_t{4} << 20;   // of words
constexpr uint64_t kMostNotes = uint64_t{256} << 20;  // bytes

Digest own_digest(const Footer& footer) { return digest_of(&footer, offsetof(Footer, own_digest)); }

[[noreturn]] void refuse(const InputFile& file, const std::string& what) {
  throw input_error(file.path() + ": " + what);
}

Footer read_footer(const InputFile& file, const Digest& key) {
  Footer footer;
  const Footer expected;
  if (file.size() < sizeof footer) refuse(file, "too short");
  file.read(&footer, sizeof footer, file.size() - sizeof footer);
  if (footer.own_digest != own_digest(footer)) refuse(file, "damaged footer");
  if (footer.magic != expected.magic || footer.version != expected.version || footer.encoded > 1) {
    refuse(file, "unknown format");
  }
  if (footer.key != key) refuse(file, "rows of other data or options");
  const uint64_t parts = file.size() - sizeof footer;
  // Each against the size first, so that the sum cannot overflow.
  if (footer.words > parts / 4 || footer.rows > parts / sizeof(IndexEntry) ||
      footer.notes_bytes > std::min(parts, kMostNotes) ||
      footer.words * 4 + footer.rows * sizeof(IndexEntry) + footer.notes_bytes != parts) {
    refuse(file, "its sizes do not fit the file");
  }
  return footer;
}

/// Words of rows, read in pieces from the front.
class WordReader {
 public:
  WordReader(const InputFile& file, uint64_t words) : file_(file), left_(words) {}

  std::span<const uint32_t> next(uint64_t count) {
    if (piece_.size() - at_ < count) refill(count);
    const auto row = std::span(piece_).subspan(at_, count);
    at_ += count;
    return row;
  }
  bool at_end() const { return left_ == 0 && at_ == piece_.size(); }
  uint64_t left() const { return left_ + piece_.size() - at_; }
  Digest digest() const { return hasher_.digest(); }

 private:
  void refill(uint64_t count) {
    piece_.erase(piece_.begin(), piece_.begin() + static_cast<ptrdiff_t>(at_));
    at_ = 0;
    const size_t before = piece_.size();
    const uint64_t more = std::min(left_, std::max(count - before, kPieceBytes / 4));
    piece_.resize(before + more);
    file_.read(piece_.data() + before, more * 4, offset_);
    hasher_.update(piece_.data() + before, more * 4);
    offset_ += more * 4;
    left_ -= more;
  }

  const InputFile& file_;
  uint64_t left_, offset_ = 0;
  std::vector<uint32_t> piece_;
  size_t at_ = 0;
  Hasher hasher_;
};

}  // namespace

void TokenStore::write_footer(const Digest& key, const std::string& notes) {
  HEARTH_CHECK(out_ && words_.empty() && notes.size() <= kMostNotes, "a finished store in a file");
  Footer footer;
  footer.key = key;
  footer.rows = static_cast<uint64_t>(rows());
  footer.words = in_file_;
  footer.notes_bytes = notes.size();
  footer.encoded = encoded_ ? 1 : 0;
  footer.words_digest = hasher_.digest();

  Hasher index;
  std::vector<IndexEntry> piece;
  for (size_t row = 0; row < index_.size(); ++row) {
    piece.push_back({index_[row].length, index_[row].runs, lines_[row]});
    if (piece.size() < kIndexPiece && row + 1 < index_.size()) continue;
    index.update(piece.data(), piece.size() * sizeof(IndexEntry));
    out_->write(piece.data(), piece.size() * sizeof(IndexEntry));
    piece.clear();
  }
  footer.index_digest = index.digest();
  footer.notes_digest = digest_of(notes);
  footer.own_digest = own_digest(footer);
  out_->write(notes.data(), notes.size());
  out_->write(&footer, sizeof footer);
  out_->close();
  // All of it is in the file from here on. Assigning {} would keep the memory.
  words_ = std::vector<uint32_t>();
  lines_ = std::vector<uint32_t>();
}

TokenStore::Opened TokenStore::open(const std::string& path, const Digest& key, int64_t limit,
                                    int64_t vocabulary) {
  Opened opened{TokenStore(limit), ""};
  TokenStore& store = opened.store;
  store.in_.emplace(path);
  const InputFile& file = *store.in_;
  const Footer footer = read_footer(file, key);
  const auto ids = static_cast<uint32_t>(vocabulary > 0 ? vocabulary : int64_t{1} << 31);

  store.encoded_ = footer.encoded == 1;
  store.index_.reserve(footer.rows);
  store.marks_.reserve((footer.rows + 63) / 64);
  WordReader words(file, footer.words);
  Hasher index;
  std::vector<IndexEntry> piece;
  const uint64_t index_begin = footer.words * 4;
  for (uint64_t row = 0; row < footer.rows; row += piece.size()) {
    piece.resize(std::min<uint64_t>(kIndexPiece, footer.rows - row));
    file.read(piece.data(), piece.size() * sizeof(IndexEntry),
              index_begin + row * sizeof(IndexEntry));
    index.update(piece.data(), piece.size() * sizeof(IndexEntry));
    for (const IndexEntry& entry : piece) {
      const uint64_t count = uint64_t{entry.length} + entry.runs;
      if (count > words.left()) refuse(file, "its index does not fit its words");
      const auto trained =
          check_row_words(words.next(count), entry.runs, entry.length, store.limit_, ids);
      if (!trained) refuse(file, "a damaged row");
      store.append({entry.length, entry.runs, trained->cut}, trained->whole, entry.line);
    }
  }
  if (!words.at_end()) refuse(file, "words that belong to no row");
  opened.notes.resize(footer.notes_bytes);
  file.read(opened.notes.data(), opened.notes.size(),
            index_begin + footer.rows * sizeof(IndexEntry));
  if (words.digest() != footer.words_digest || index.digest() != footer.index_digest ||
      digest_of(opened.notes) != footer.notes_digest) {
    refuse(file, "checksum mismatch");
  }
  return opened;
}

}  // namespace hearth
