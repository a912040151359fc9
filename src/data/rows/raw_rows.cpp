#include "data/rows/raw_rows.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "data/rows/byte_stream.h"
#include "data/rows/element_reader.h"
#include "data/rows/line_reader.h"

namespace hearth {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// What may be blank between rows: a small packed file can hold any amount of it.
constexpr size_t kMostBlankLines = 1'000'000;

enum class Container { lines, array, document };

// By the name without .gz or .zst; whether a .json file is an array is seen when it is opened.
Container container_of(std::string path) {
  std::string extension = extension_of(path);
  if (extension == ".gz" || extension == ".zst") {
    path.erase(path.size() - extension.size());
    extension = extension_of(path);
  }
  if (extension == ".txt") return Container::document;
  return extension == ".json" ? Container::array : Container::lines;
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r") == text.npos; }

// A file that is being read.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : bytes_(path) {
    container_ = path == "-" ? Container::lines : container_of(path);
    std::string head;
    if (container_ == Container::array && !begins_as_array(head)) container_ = Container::lines;
    if (container_ == Container::array) {
      elements_.emplace(bytes_, std::move(head));
    } else {
      lines_.emplace(bytes_, std::move(head));
    }
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  bool next(RawRow& row) {
    row.file = bytes_.name();
    row.document = container_ == Container::document;
    if (row.document) return read_document(row);
    return container_ == Container::array ? read_element(row) : read_line(row);
  }

  const ByteStream& bytes() const { return bytes_; }

 private:
  bool begins_as_array(std::string& head);
  bool read_line(RawRow& row);
  bool read_element(RawRow& row);
  bool read_document(RawRow& row);

  ByteStream bytes_;
  Container container_;
  std::optional<LineReader> lines_;  // one of the two
  std::optional<ElementReader> elements_;
  bool document_read_ = false;
};

// Many files named .json hold JSON Lines.
bool OpenFile::begins_as_array(std::string& head) {
  size_t at = 0;
  while (at < kMaxLine) {
    at = head.starts_with(kByteOrderMark) ? std::max(at, kByteOrderMark.size()) : at;
    at = head.find_first_not_of(" \t\r\n", at);
    if (at != std::string::npos) return head[at] == '[';
    at = head.size();
    reserve_for_line(head);
    if (!bytes_.append_to(head, kTextPiece)) return false;
  }
  return false;
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
  size_t next_file = 0;
  std::optional<OpenFile> file;
  uint64_t bytes_read = 0;  // of the files before
  std::vector<std::pair<std::string, Digest>> digests;
};

RawRowSource::RawRowSource(std::vector<std::string> files) : state_(std::make_unique<State>()) {
  state_->files = std::move(files);
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
    if (s.file->next(row)) return true;
    s.digests.emplace_back(s.files[s.next_file], s.file->bytes().digest());
    s.bytes_read += s.file->bytes().bytes_read();
    s.file.reset();
    ++s.next_file;
  }
}

uint64_t RawRowSource::bytes_read() const {
  return state_->bytes_read + (state_->file ? state_->file->bytes().bytes_read() : 0);
}

const std::vector<std::pair<std::string, Digest>>& RawRowSource::digests() const {
  return state_->digests;
}

void check_data_files(const std::vector<std::string>& files) {
  if (std::count(files.begin(), files.end(), "-") > 1) {
    throw usage_error("standard input (-) can be read only once");
  }
  for (const std::string& file : files) {
    if (file != "-") const ByteStream opened(file);
  }
}

}  // namespace hearth
