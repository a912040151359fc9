#include "data/rows/raw_rows.h"

#include <algorithm>
#include <optional>

#include "base/directories.h"
#include "base/error.h"
#include "base/utf8.h"
#include "data/parquet/parquet_reader.h"
#include "data/rows/byte_stream.h"
#include "data/rows/csv_reader.h"
#include "data/rows/element_reader.h"
#include "data/rows/line_reader.h"

namespace hearth {
namespace {

// What may be blank between rows: a small packed file can hold any amount of it.
constexpr size_t kMostBlankLines = 1'000'000;

enum class Container { lines, array, document, table, parquet };

// Without .gz, .zst or .xz.
std::string unpacked_extension(std::string path) {
  const std::string extension = extension_of(path);
  if (!is_packing(extension)) return extension;
  path.erase(path.size() - extension.size());
  return extension_of(path);
}

// By the name; whether a .json file is an array is seen when it is opened.
Container container_of(const std::string& path) {
  const std::string extension = unpacked_extension(path);
  if (extension == ".txt") return Container::document;
  if (extension == ".csv" || extension == ".tsv") return Container::table;
  return extension == ".json" ? Container::array : Container::lines;
}

/// Whether the first line of a text without a name is the head of a table: names between
/// delimiters, or one name.
bool names_columns(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  const auto is_text = [](unsigned char c) { return c >= ' ' || c == '\t' || c == '\r'; };
  if (!std::all_of(line.begin(), line.end(), is_text)) return false;
  constexpr std::string_view kOfNames =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-\"\r";
  return line.find_first_of(",;\t") != line.npos || line.find_first_not_of(kOfNames) == line.npos;
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r") == text.npos; }

// A file that is being read.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path) {
    const uint64_t size = path == "-" ? 0 : file_info(path).size;
    if (path != "-" && is_parquet_file(path)) {
      container_ = Container::parquet;
      parquet_.emplace(path);
      return;
    }
    container_ = path == "-" ? Container::lines : container_of(path);
    bytes_.emplace(path);
    if (path != "-" && file_info(path).size < size) {
      throw input_error(path + ": shrank while it was read; run again once nobody writes it");
    }
    std::string head;
    named_ = path != "-";
    if (!named_) {
      container_ = container_by_content(head);
    } else if (container_ == Container::array && first_character(head) != '[') {
      container_ = Container::lines;  // many files named .json hold JSON Lines
    }
    if (container_ == Container::table) {
      table_.emplace(*bytes_, std::move(head), unpacked_extension(path) == ".tsv" ? '\t' : '\0');
    } else if (container_ == Container::array) {
      elements_.emplace(*bytes_, std::move(head));
    } else {
      lines_.emplace(*bytes_, std::move(head));
    }
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  bool next(RawRow& row) {
    if (parquet_) return parquet_->next(row);
    row.file = bytes_->name();
    row.document = container_ == Container::document;
    row.problem.clear();
    if (row.document) return read_document(row);
    if (table_) return table_->next(row);
    return container_ == Container::array ? read_element(row) : read_line(row);
  }

  /// To be called once, after the last row that is wanted.
  Digest digest() {
    if (parquet_) return parquet_->digest();
    bytes_->skip_rest();
    return bytes_->digest();
  }
  uint64_t bytes_read() const { return parquet_ ? parquet_->bytes_read() : bytes_->bytes_read(); }

 private:
  Container container_by_content(std::string& head);
  char first_character(std::string& head);
  bool read_line(RawRow& row);
  bool read_element(RawRow& row);
  bool read_document(RawRow& row);

  bool named_ = true;  // not standard input
  Container container_ = Container::lines;
  std::optional<ParquetReader> parquet_;  // or bytes_, and one of the three below it
  std::optional<ByteStream> bytes_;
  std::optional<LineReader> lines_;
  std::optional<ElementReader> elements_;
  std::optional<CsvReader> table_;
  bool document_read_ = false;
};

// Standard input has no name that says what it is. A row of JSON Lines is an object.
Container OpenFile::container_by_content(std::string& head) {
  const char first = first_character(head);
  if (first == '[') return Container::array;
  if (first == '{' || first == '\0') return Container::lines;
  const bool table = names_columns(std::string_view(head).substr(head.find(first)));
  return table ? Container::table : Container::lines;
}

// The first that is not blank; 0 at the end. What was read for it is in `head`.
char OpenFile::first_character(std::string& head) {
  size_t at = 0;
  while (at < kMaxLine) {
    at = head.starts_with(kByteOrderMark) ? std::max(at, kByteOrderMark.size()) : at;
    at = head.find_first_not_of(" \t\r\n", at);
    if (at != std::string::npos) return head[at];
    at = head.size();
    reserve_for_line(head);
    if (!bytes_->append_to(head, kTextPiece)) return '\0';
  }
  return '\0';
}

bool OpenFile::read_line(RawRow& row) {
  size_t blanks = 0, blank_lines = 0;
  while (auto line = lines_->next()) {
    if (lines_->number() == 1 && line->starts_with(kByteOrderMark)) {
      line->remove_prefix(kByteOrderMark.size());
    }
    if (!is_blank(*line)) {
      row.line = lines_->number();
      row.text.assign(*line);
      if (!named_ && row.text[row.text.find_first_not_of(" \t\r")] != '{') {
        row.text.clear();
        row.problem =
            "expected a row of JSON Lines, or in the first line the names of a table's columns";
      }
      return true;
    }
    blanks += line->size() + 1;
    if (blanks >= kMaxLine || ++blank_lines > kMostBlankLines) {
      throw input_error(lines_->where() +
                        ": more than a million blank lines or 48 MiB of them; remove them");
    }
  }
  return false;
}

bool OpenFile::read_element(RawRow& row) {
  const auto element = elements_->next();
  if (!element) return false;
  row.line = elements_->line();
  row.text.assign(*element);
  return true;
}

bool OpenFile::read_document(RawRow& row) {
  if (document_read_) return false;
  document_read_ = true;
  std::string_view text = lines_->rest();
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  row.line = 1;
  row.text.assign(text);
  return true;
}

}  // namespace

struct RawRowSource::State {
  std::vector<std::string> files;
  int64_t most_rows = 0;
  int64_t rows = 0;  // of the file so far
  size_t next_file = 0;
  std::optional<OpenFile> file;
  uint64_t bytes_read = 0;  // of the files before
  std::vector<std::pair<std::string, Digest>> digests;
};

RawRowSource::RawRowSource(std::vector<std::string> files, int64_t most_rows)
    : state_(std::make_unique<State>()) {
  state_->files = std::move(files);
  state_->most_rows = most_rows;
}

RawRowSource::~RawRowSource() = default;
RawRowSource::RawRowSource(RawRowSource&&) noexcept = default;
RawRowSource& RawRowSource::operator=(RawRowSource&&) noexcept = default;

bool RawRowSource::next(RawRow& row) {
  State& s = *state_;
  while (true) {
    if (!s.file) {
      if (s.next_file == s.files.size()) return false;
      s.file.emplace(s.files[s.next_file]);
    }
    const bool enough = s.most_rows > 0 && s.rows == s.most_rows;
    if (!enough && s.file->next(row)) {
      ++s.rows;
      return true;
    }
    s.digests.emplace_back(s.files[s.next_file], s.file->digest());
    s.bytes_read += s.file->bytes_read();
    s.rows = 0;
    s.file.reset();
    ++s.next_file;
  }
}

uint64_t RawRowSource::bytes_read() const {
  return state_->bytes_read + (state_->file ? state_->file->bytes_read() : 0);
}

const std::vector<std::pair<std::string, Digest>>& RawRowSource::digests() const {
  return state_->digests;
}

void check_data_files(const std::vector<std::string>& files) {
  if (std::count(files.begin(), files.end(), "-") > 1) {
    throw usage_error("standard input (-) can be read only once");
  }
  for (const std::string& file : files) {
    if (file == "-") continue;
    if (is_parquet_file(file)) {
      const ParquetReader opened(file);
    } else {
      const ByteStream opened(file);
    }
  }
}

}  // namespace hearth
