#include "data/rows/raw_rows.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/error.h"
#include "base/file_ops.h"
#include "data/rows/line_reader.h"

namespace hearth {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

std::string extension_of(const std::string& path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos || path.find('/', dot) != std::string::npos) return "";
  std::string extension = path.substr(dot);
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension;
}

// Made out before the first row is read, so that a long list fails at once.
void check_file(const std::string& path) {
  if (path == "-") return;
  const std::string extension = extension_of(path);
  if (extension == ".json") {
    throw input_error(path +
                      ": .json arrays are not read by this version; write one object a line "
                      "(jq -c '.[]' FILE > rows.jsonl)");
  }
  const LineReader opened(path);
  if (extension == ".gz" || extension == ".zst" || extension == ".parquet" ||
      extension == ".arrow") {
    throw input_error(path + ": " + extension +
                      " files are not read by this version; this needs "
                      "JSON Lines, one object a line, unpacked");
  }
}

}  // namespace

struct RawRowSource::State {
  std::vector<std::string> files;
  size_t next_file = 0;
  std::optional<LineReader> reader;
  std::vector<std::pair<std::string, Digest>> digests;

  bool read_line(RawRow& row);
  void read_document(RawRow& row);
};

bool RawRowSource::State::read_line(RawRow& row) {
  while (auto line = reader->next()) {
    if (reader->number() == 1 && line->starts_with(kByteOrderMark)) {
      line->remove_prefix(kByteOrderMark.size());
    }
    if (line->find_first_not_of(" \t\r") == std::string_view::npos) continue;
    row.line = reader->number();
    row.document = false;
    row.text.assign(*line);
    return true;
  }
  return false;
}

void RawRowSource::State::read_document(RawRow& row) {
  std::string_view text = reader->rest();
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  row.line = 1;
  row.document = true;
  row.text.assign(text);
}

RawRowSource::RawRowSource(std::vector<std::string> files) : state_(std::make_unique<State>()) {
  if (std::count(files.begin(), files.end(), "-") > 1) {
    throw usage_error("standard input (-) can be read once only");
  }
  for (const std::string& file : files) check_file(file);
  state_->files = std::move(files);
}

RawRowSource::~RawRowSource() = default;
RawRowSource::RawRowSource(RawRowSource&&) noexcept = default;
RawRowSource& RawRowSource::operator=(RawRowSource&&) noexcept = default;

bool RawRowSource::next(RawRow& row) {
  State& s = *state_;
  while (true) {
    if (!s.reader) {
      if (s.next_file == s.files.size()) return false;
      s.reader.emplace(s.files[s.next_file]);
    }
    row.file = s.reader->name();
    const bool document = extension_of(s.files[s.next_file]) == ".txt";
    bool found = true;
    if (document) {
      s.read_document(row);
    } else {
      found = s.read_line(row);
    }
    if (document || !found) {
      s.digests.emplace_back(s.files[s.next_file], s.reader->digest());
      s.reader.reset();
      ++s.next_file;
    }
    if (found) return true;
  }
}

const std::vector<std::pair<std::string, Digest>>& RawRowSource::digests() const {
  return state_->digests;
}

}  // namespace hearth
