#include "data/rows/sample_view.h"

#include <algorithm>
#include <vector>

#include "data/tokenizer/stream_decoder.h"

namespace hearth {
namespace {

// Puts marks where flags change.
class Marker {
 public:
  explicit Marker(const TrainedMarks& marks) : marks_(marks) {}
  void add(std::string_view piece, bool trained) {
    if (piece.empty()) return;
    if (trained != open_) text_ += trained ? marks_.begin : marks_.end;
    open_ = trained;
    text_ += piece;
  }
  std::string take() {
    if (open_) text_ += marks_.end;
    return std::move(text_);
  }

 private:
  const TrainedMarks& marks_;
  std::string text_;
  bool open_ = false;
};

std::string without_controls(const std::string& text) {
  std::string clean;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) {
      clean += "\ufffd";
    } else {
      clean += c;
    }
  }
  return clean;
}

bool continues_character(char c) { return (static_cast<uint8_t>(c) & 0xc0) == 0x80; }

// A run of text, its middle left out where it is longer than `most`.
std::string without_middle(std::string_view run, size_t most) {
  size_t head = most / 2, tail = most / 2;
  if (run.size() <= most + 32) return std::string(run);
  while (head > 0 && continues_character(run[head])) --head;
  while (tail > 0 && continues_character(run[run.size() - tail])) --tail;
  return std::string(run.substr(0, head)) + "[... " + std::to_string(run.size() - head - tail) +
         " bytes ...]" + std::string(run.substr(run.size() - tail));
}

}  // namespace

std::string marked_text(const Tokenizer& tokenizer, std::span<const int32_t> ids,
                        std::span<const uint8_t> trained, const TrainedMarks& marks) {
  Marker marker(marks);
  StreamDecoder decoder(tokenizer, false);
  for (size_t i = 0; i < ids.size(); ++i) {
    marker.add(without_controls(decoder.push(ids[i])), trained[i] != 0);
  }
  marker.add(without_controls(decoder.finish()), !trained.empty() && trained.back() != 0);
  return marker.take();
}

std::string marked_ids(std::span<const int32_t> ids, std::span<const uint8_t> trained,
                       const TrainedMarks& marks) {
  Marker marker(marks);
  for (size_t i = 0; i < ids.size(); ++i) {
    marker.add((i > 0 ? " " : "") + std::to_string(ids[i]), trained[i] != 0);
  }
  return marker.take();
}

std::string shortened(const std::string& marked, size_t most, const TrainedMarks& marks) {
  if (marked.size() <= most) return marked;
  // Runs between marks, each with the mark that it begins with.
  std::vector<std::string_view> runs;
  for (size_t begin = 0; begin < marked.size();) {
    const size_t end = std::min(
        {marked.find(marks.begin, begin + 1), marked.find(marks.end, begin + 1), marked.size()});
    runs.push_back(std::string_view(marked).substr(begin, end - begin));
    begin = end;
  }
  const size_t a_run = std::max<size_t>(most / runs.size(), 64);
  std::string text;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (text.size() >= most) {
      const size_t left = marked.size() - static_cast<size_t>(runs[i].data() - marked.data());
      // What is left out closes the span that it was in.
      const bool open = runs[i].starts_with(marks.end);
      return text + (open ? marks.end : "") + "[... " + std::to_string(left) + " bytes ...]";
    }
    text += without_middle(runs[i], a_run);
  }
  return text;
}

}  // namespace hearth
