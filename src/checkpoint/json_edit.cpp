#include "checkpoint/json_edit.h"

#include "base/error.h"

namespace hearth {
namespace {

/// Walks a text that was parsed before, so that nothing can be missing.
class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text), at_(text.find('{') + 1) {}

  size_t at() const { return at_; }
  char next() const { return text_[at_]; }
  void skip() { ++at_; }

  void skip_blanks() {
    while (next() == ' ' || next() == '\t' || next() == '\n' || next() == '\r') ++at_;
  }

  std::string_view string() {
    const size_t begin = at_++;
    while (next() != '"') at_ += next() == '\\' ? 2 : 1;
    return text_.substr(begin, ++at_ - begin);
  }

  void skip_value() {
    if (next() == '"') return static_cast<void>(string());
    int depth = 0;
    while (depth > 0 || (next() != ',' && next() != '}')) {
      if (next() == '"') {
        string();
        continue;
      }
      if (next() == '{' || next() == '[') ++depth;
      if (next() == '}' || next() == ']') --depth;
      ++at_;
    }
  }

 private:
  std::string_view text_;
  size_t at_;
};

}  // namespace

std::string with_member(const std::string& text, std::string_view key, const Json& value,
                        const std::string& source) {
  if (!parse_json(text, source).is_object()) throw input_error(source + ": a JSON object expected");
  const std::string written = value.dump();
  Walker walker(text);
  size_t end = walker.at();  // behind the last member
  for (walker.skip_blanks(); walker.next() != '}'; walker.skip_blanks()) {
    const std::string name = parse_json(std::string(walker.string()), source).as_string();
    walker.skip_blanks();
    walker.skip();  // the colon
    walker.skip_blanks();
    const size_t begin = walker.at();
    walker.skip_value();
    if (name == key) return text.substr(0, begin) + written + text.substr(walker.at());
    end = walker.at();
    walker.skip_blanks();
    if (walker.next() == ',') walker.skip();
  }
  const bool is_empty = end == text.find('{') + 1;
  while (!is_empty && (text[end - 1] == ' ' || text[end - 1] == '\n' || text[end - 1] == '\r' ||
                       text[end - 1] == '\t')) {
    --end;  // what skip_value took behind a number
  }
  return text.substr(0, end) + (is_empty ? "\n  " : ",\n  ") + Json(std::string(key)).dump() +
         ": " + written + (is_empty ? "\n" : "") + text.substr(end);
}

}  // namespace hearth
