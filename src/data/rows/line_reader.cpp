#include "data/rows/line_reader.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/utf8.h"
#include "data/tokenizer/tokenizer.h"
#include "model/model_files.h"

namespace hearth {
namespace {

constexpr size_t kPiece = size_t{1} << 20;

void refuse_containers(std::string_view head, const std::string& name) {
  refuse_foreign(head, name);
  if (head.starts_with("\x1f\x8b")) {
    throw input_error(name +
                      ": gzip is not read by this version; unpack the file first (gunzip -k)");
  }
  if (head.starts_with("\x28\xb5\x2f\xfd")) {
    throw input_error(name + ": zstd is not read by this version; unpack the file first (unzstd)");
  }
  if (head.starts_with("PAR1") || head.starts_with("ARROW1")) {
    throw input_error(name +
                      ": Parquet and Arrow files are not read; convert the file with "
                      "pandas.read_parquet(FILE).to_json('rows.jsonl', orient='records', "
                      "lines=True)");
  }
}

}  // namespace

LineReader::LineReader(const std::string& path) : name_(path == "-" ? "standard input" : path) {
  if (path != "-") file_.emplace(path);
  fill();
  refuse_containers(std::string_view(buffer_).substr(0, 64), name_);
}

bool LineReader::fill() {
  const size_t before = buffer_.size();
  if (file_) {
    const auto piece = static_cast<size_t>(std::min<uint64_t>(kPiece, file_->size() - offset_));
    buffer_.resize(before + piece);
    file_->read(buffer_.data() + before, piece, offset_);
  } else {
    buffer_.resize(before + kPiece);
    const size_t got = std::fread(buffer_.data() + before, 1, kPiece, stdin);
    buffer_.resize(before + got);
    if (std::ferror(stdin) != 0) throw input_error("standard input cannot be read");
  }
  const size_t got = buffer_.size() - before;
  hasher_.update(buffer_.data() + before, got);
  offset_ += got;
  return got > 0;
}

std::string LineReader::where() const { return name_ + ":" + std::to_string(number_); }

std::optional<std::string_view> LineReader::next() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  size_t searched = 0;
  size_t newline = 0;
  while ((newline = buffer_.find('\n', searched)) == std::string::npos) {
    searched = buffer_.size();
    if (searched >= kMaxLine || !fill()) break;
  }
  const size_t length = std::min(newline, buffer_.size());
  if (length == 0 && newline == std::string::npos) return std::nullopt;
  ++number_;
  if (length >= kMaxLine) throw input_error(where() + ": a line of 64 MiB or more");
  begin_ = newline == std::string::npos ? length : length + 1;
  return std::string_view(buffer_).substr(0, length);
}

std::string_view LineReader::rest() {
  number_ = 1;
  while (fill()) {
    if (buffer_.size() >= kMaxLine) {
      throw input_error(name_ +
                        ": a text of 64 MiB or more is not read as one document; cut it up");
    }
  }
  return buffer_;
}

void encode_lines(const Tokenizer& tokenizer, const std::string& file, bool add_special,
                  const std::function<void(const Encoding&)>& line) {
  LineReader reader(file);
  while (const auto text = reader.next()) {
    if (const size_t bad = find_invalid_utf8(*text); bad != std::string_view::npos) {
      throw input_error(reader.where() + ": invalid UTF-8 at byte " + std::to_string(bad + 1));
    }
    line(tokenizer.encode(*text, {.add_special = add_special}));
  }
}

}  // namespace hearth
