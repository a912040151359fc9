#include "data/rows/line_reader.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "data/tokenizer/tokenizer.h"

namespace hearth {

// No more than kMaxLine in all, so that the buffer's capacity does not double beyond it.
bool LineReader::take_piece() {
  reserve_for_line(buffer_);
  return bytes_.append_to(buffer_, std::min(kTextPiece, kMaxLine - buffer_.size()));
}

std::optional<std::string_view> LineReader::next() {
  size_t newline = buffer_.find('\n', begin_);
  if (newline == std::string::npos) {
    buffer_.erase(0, begin_);
    begin_ = 0;
    size_t searched = buffer_.size();
    while (searched < kMaxLine && take_piece()) {
      newline = buffer_.find('\n', searched);
      if (newline != std::string::npos) break;
      searched = buffer_.size();
    }
  }
  const size_t length = std::min(newline, buffer_.size()) - begin_;
  if (length == 0 && newline == std::string::npos) return std::nullopt;
  ++number_;
  if (length >= kMaxLine) throw input_error(where() + ": a line of 48 MiB or more; split it");
  const std::string_view line = std::string_view(buffer_).substr(begin_, length);
  begin_ += newline == std::string::npos ? length : length + 1;
  return line;
}

std::string_view LineReader::rest() {
  number_ = 1;
  while (take_piece()) {
    if (buffer_.size() >= kMaxLine) {
      throw input_error(bytes_.name() + ": a document of 48 MiB or more; split it");
    }
  }
  return buffer_;
}

void encode_lines(const Tokenizer& tokenizer, const std::string& file, bool add_special,
                  const std::function<void(const Encoding&)>& line) {
  ByteStream bytes(file);
  LineReader reader(bytes);
  while (const auto text = reader.next()) {
    if (const size_t bad = find_invalid_utf8(*text); bad != std::string_view::npos) {
      throw input_error(reader.where() + ": invalid UTF-8 at byte " + std::to_string(bad + 1));
    }
    line(tokenizer.encode(*text, {.add_special = add_special}));
  }
}

}  // namespace hearth
