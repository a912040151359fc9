#include "topology/xml_document.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/utf8.h"

namespace hearth {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Bytes above 127 are parts of characters that XML mostly allows in names.
bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == ':' || c == '-' || c == '.' || static_cast<unsigned char>(c) > 127;
}

void append_utf8(std::string& text, uint32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr uint32_t kMarks[] = {0, 0xC0, 0xE0, 0xF0};
  text += static_cast<char>(kMarks[more] | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | (code >> (6 * i) & 0x3F));
}

// The character of "lt" or "#x3c"; nullopt for any other name.
std::optional<uint32_t> entity_code(std::string_view name) {
  if (name == "amp") return '&';
  if (name == "lt") return '<';
  if (name == "gt") return '>';
  if (name == "quot") return '"';
  if (name == "apos") return '\'';
  if (!name.starts_with('#')) return std::nullopt;
  name.remove_prefix(1);
  const bool hex = name.starts_with('x');
  if (hex) name.remove_prefix(1);
  uint32_t code = 0;
  const char* last = name.data() + name.size();
  const auto [end, error] = std::from_chars(name.data(), last, code, hex ? 16 : 10);
  const bool character = code > 0 && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
  if (error != std::errc() || end != last || !character) return std::nullopt;
  return code;
}

constexpr size_t kLongestEntity = 10;  // "#x0010FFFF"

}  // namespace

/// Walks the text once.
class XmlParser {
 public:
  XmlParser(XmlDocument& document, std::string_view text, const std::string& source,
            const XmlLimits& limits)
      : document_(document), text_(text), source_(source), limits_(limits) {}

  void parse() {
    if (rest().starts_with("\xEF\xBB\xBF")) at_ += 3;
    if (const size_t nul = text_.find('\0'); nul != std::string_view::npos) {
      at_ = nul;
      refuse("not XML: a NUL byte");
    }
    skip_between(true);
    if (at_ == text_.size() || text_[at_] != '<') refuse("not XML: no element");
    count_lines();
    open();
    while (!open_.empty()) step();
    skip_between(false);
    if (at_ < text_.size()) refuse("text after the end of the document");
  }

 private:
  std::string_view rest() const { return text_.substr(at_); }

  [[noreturn]] void refuse(const std::string& what) const {
    const auto line = std::count(text_.begin(), text_.begin() + static_cast<long>(at_), '\n') + 1;
    throw input_error(source_ + ": line " + std::to_string(line) + ": " + what);
  }

  void skip_spaces() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  void skip_past(std::string_view mark, const char* what) {
    const size_t end = text_.find(mark, at_);
    if (end == std::string_view::npos) refuse(std::string(what) + " does not end");
    at_ = end + mark.size();
  }

  // A comment or an instruction for programs; false if something else is here.
  bool skip_aside() {
    if (rest().starts_with("<!--")) {
      at_ += 4;
      skip_past("-->", "a comment");
    } else if (rest().starts_with("<?")) {
      skip_past("?>", "an instruction");
    } else {
      return false;
    }
    return true;
  }

  // Before and after the root.
  void skip_between(bool doctype_allowed) {
    while (true) {
      skip_spaces();
      if (skip_aside()) continue;
      if (!rest().starts_with("<!")) return;
      if (!doctype_allowed || !rest().starts_with("<!DOCTYPE"))
        refuse("a declaration in this place");
      doctype_allowed = false;
      const size_t end = text_.find_first_of("[>", at_);
      if (end == std::string_view::npos || text_[end] == '[') {
        refuse("the document type has declarations of its own, which are not read");
      }
      at_ = end + 1;
    }
  }

  // A tag, or what is between tags.
  void step() {
    count_lines();
    const std::string_view here = rest();
    if (here.empty()) refuse("the text ends before element " + quoted(name_of(open_.back())));
    if (here.front() != '<') {
      const size_t end = std::min(text_.find('<', at_), text_.size());
      XmlElement& element = document_.elements_[open_.back()];
      if (document_.elements_.size() == open_.back() + 1 && element.text.empty()) {
        element.text = text_.substr(at_, end - at_);
      }
      check_entities(at_, end);
      at_ = end;
    } else if (here.starts_with("</")) {
      close();
    } else if (here.starts_with("<![CDATA[")) {
      skip_past("]]>", "a CDATA section");
    } else if (!skip_aside()) {
      if (here.starts_with("<!")) refuse("a declaration in this place");
      open();
    }
  }

  std::string_view name_of(uint32_t element) const { return document_.elements_[element].name; }

  std::string_view take_name() {
    const size_t begin = at_;
    while (at_ < text_.size() && is_name_byte(text_[at_])) ++at_;
    if (at_ == begin) refuse("expected a name");
    return text_.substr(begin, at_ - begin);
  }

  void open() {
    if (document_.elements_.size() >= limits_.elements) {
      refuse("more than " + std::to_string(limits_.elements) + " elements");
    }
    if (open_.size() >= limits_.depth) {
      refuse("elements are nested deeper than " + std::to_string(limits_.depth));
    }
    ++at_;
    XmlElement element;
    element.line = line_;
    element.name = take_name();
    element.first_attribute = static_cast<uint32_t>(document_.attributes_.size());
    bool closed = false;
    while (true) {
      const size_t before = at_;
      skip_spaces();
      if (rest().starts_with("/>") || rest().starts_with(">")) {
        closed = text_[at_] == '/';
        at_ += closed ? 2 : 1;
        break;
      }
      if (at_ == text_.size()) refuse("the text ends in a tag");
      if (at_ == before) refuse("expected a space or the end of the tag");
      if (element.attributes == limits_.attributes) {
        refuse("an element with more than " + std::to_string(limits_.attributes) + " attributes");
      }
      take_attribute(element);
      ++element.attributes;
    }
    const auto index = static_cast<uint32_t>(document_.elements_.size());
    element.end = index + 1;
    document_.elements_.push_back(element);
    if (!closed) open_.push_back(index);
  }

  void take_attribute(const XmlElement& element) {
    XmlAttribute attribute;
    attribute.name = take_name();
    for (const XmlAttribute& other : document_.attributes(element)) {
      if (other.name == attribute.name) refuse("attribute " + quoted(attribute.name) + " twice");
    }
    skip_spaces();
    if (!rest().starts_with("=")) refuse("attribute " + quoted(attribute.name) + " has no value");
    ++at_;
    skip_spaces();
    const char mark = at_ < text_.size() ? text_[at_] : '\0';
    if (mark != '"' && mark != '\'') refuse("the value of an attribute is not in quotes");
    const size_t end = text_.find(mark, ++at_);
    if (end == std::string_view::npos) refuse("the value of an attribute does not end");
    attribute.value = text_.substr(at_, end - at_);
    if (attribute.value.find('<') != std::string_view::npos) refuse("'<' in an attribute");
    check_entities(at_, end);
    document_.attributes_.push_back(attribute);
    at_ = end + 1;
  }

  void close() {
    at_ += 2;
    const std::string_view name = take_name();
    skip_spaces();
    if (!rest().starts_with(">")) refuse("expected '>'");
    if (name != name_of(open_.back())) {
      refuse("element " + quoted(name_of(open_.back())) + " is ended by " + quoted(name));
    }
    ++at_;
    document_.elements_[open_.back()].end = static_cast<uint32_t>(document_.elements_.size());
    open_.pop_back();
  }

  void check_entities(size_t begin, size_t end) {
    const std::string_view text = text_.substr(0, end);
    for (size_t at = begin; (at = text.find('&', at)) != std::string_view::npos; ++at) {
      const size_t stop = text_.substr(at + 1, kLongestEntity + 1).find(';');
      if (stop != std::string_view::npos && entity_code(text_.substr(at + 1, stop))) continue;
      at_ = at;
      refuse("an entity that is not read: " + quoted(text_.substr(at, 20)));
    }
  }

  void count_lines() {
    line_ += static_cast<uint32_t>(std::count(text_.begin() + static_cast<long>(counted_),
                                              text_.begin() + static_cast<long>(at_), '\n'));
    counted_ = at_;
  }

  XmlDocument& document_;
  std::string_view text_;
  const std::string& source_;
  const XmlLimits& limits_;
  size_t at_ = 0;
  size_t counted_ = 0;  // so far lines were counted
  uint32_t line_ = 1;
  std::vector<uint32_t> open_;
};

XmlDocument::XmlDocument(std::string_view text, const std::string& source,
                         const XmlLimits& limits) {
  XmlParser(*this, text, source, limits).parse();
}

std::optional<std::string> XmlDocument::attribute(const XmlElement& element,
                                                  std::string_view name) const {
  for (const XmlAttribute& attribute : attributes(element)) {
    if (attribute.name != name) continue;
    std::string value;
    std::string_view rest = attribute.value;
    while (!rest.empty()) {
      const size_t mark = std::min(rest.find('&'), rest.size());
      value += rest.substr(0, mark);
      rest.remove_prefix(mark);
      if (rest.empty()) break;
      const size_t end = rest.find(';');
      append_utf8(value, *entity_code(rest.substr(1, end - 1)));
      rest.remove_prefix(end + 1);
    }
    return replace_invalid_utf8(value);
  }
  return std::nullopt;
}

}  // namespace hearth
