#include "report/log_lines.h"

#include <algorithm>

#include "base/error.h"

namespace hearth {
namespace {

constexpr uint64_t kPiece = uint64_t{1} << 20;
constexpr size_t kLongestLine = size_t{16} << 20;

}  // namespace

bool LogLines::next(std::string_view& line) {
  size_t searched = at_;
  while (true) {
    const size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      line = std::string_view(buffer_).substr(at_, end - at_);
      at_ = end + 1;
      ++number_;
      return true;
    }
    buffer_.erase(0, at_);
    at_ = 0;
    searched = buffer_.size();
    if (searched > kLongestLine) {
      throw input_error(file_.path() + ":" + std::to_string(number_ + 1) +
                        ": the line is longer than 16 MiB; this is not a log of hearth");
    }
    const uint64_t piece = std::min(kPiece, file_.size() - read_);
    if (piece == 0) return false;
    buffer_.resize(searched + piece);
    file_.read(buffer_.data() + searched, piece, read_);
    read_ += piece;
  }
}

}  // namespace hearth
