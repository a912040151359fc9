#include "data/chat/plain_chatml.h"

#include <optional>

#include "data/chat/jinja_tokens.h"

namespace hearth {
namespace {

// What a template does, in one line: statements as they are (blanks made one), output as
// 'literal', role and content, neighbouring literals joined. Two templates with one summary write
// the same.
class Summary {
 public:
  void statement(std::string_view inside) {
    flush();
    text_ += "{% ";
    bool blank = false;
    for (const char c : inside) {
      const bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
      if (!space) {
        if (blank) text_ += ' ';
        text_ += c;
      }
      blank = space;
    }
    text_ += " %}";
  }
  void literal(std::string_view text) { literal_ += text; }
  void field(std::string_view name) {
    flush();
    text_.append("{{ ").append(name).append(" }}");
  }
  std::string take() {
    flush();
    return std::move(text_);
  }

 private:
  void flush() {
    if (!literal_.empty()) text_ += "'" + literal_ + "'";
    literal_.clear();
  }
  std::string text_;
  std::string literal_;
};

void skip_blanks(std::string_view& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  text.remove_prefix(first == std::string_view::npos ? text.size() : first);
}

// A string literal at the front of the text, taken off it; nullopt for escapes beyond \n \t \\ and
// quotes, and for anything else.
std::optional<std::string> take_literal(std::string_view& text) {
  if (text.empty() || (text[0] != '\'' && text[0] != '"')) return std::nullopt;
  const char quote = text[0];
  std::string value;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == quote) {
      text.remove_prefix(i + 1);
      return value;
    }
    if (text[i] != '\\') {
      value += text[i];
      continue;
    }
    if (++i == text.size()) break;
    switch (text[i]) {
      case 'n': value += '\n'; break;
      case 't': value += '\t'; break;
      case '\\':
      case '\'':
      case '"': value += text[i]; break;
      default: return std::nullopt;
    }
  }
  return std::nullopt;
}

// message['role'], message["role"] or message.role (content alike), taken off the front.
std::optional<std::string_view> take_field(std::string_view& text) {
  for (const std::string_view name : {"role", "content"}) {
    for (const char* form : {"message['", "message[\"", "message."}) {
      std::string spelled(form);
      spelled += name;
      if (spelled[7] == '[') spelled.append(1, spelled[8]).append("]");
      if (text.starts_with(spelled)) {
        text.remove_prefix(spelled.size());
        return name;
      }
    }
  }
  return std::nullopt;
}

// Literals and fields joined by + or ~, in brackets or not.
bool add_expression(std::string_view text, Summary& summary) {
  skip_blanks(text);
  if (text.starts_with('(') && text.ends_with(')')) {
    text = text.substr(1, text.size() - 2);
  }
  while (true) {
    skip_blanks(text);
    if (const auto literal = take_literal(text)) {
      summary.literal(*literal);
    } else if (const auto field = take_field(text)) {
      summary.field(*field);
    } else {
      return false;
    }
    skip_blanks(text);
    if (text.empty()) return true;
    if (text[0] != '+' && text[0] != '~') return false;
    text.remove_prefix(1);
  }
}

// Null when the template has a part that plain ChatML has not.
std::optional<std::string> summarize(std::string_view jinja) {
  const auto tokens = cut_jinja(jinja);
  if (!tokens) return std::nullopt;
  Summary summary;
  for (const JinjaToken& token : *tokens) {
    switch (token.kind) {
      case JinjaToken::Kind::text: summary.literal(token.content); break;
      case JinjaToken::Kind::statement: summary.statement(token.content); break;
      case JinjaToken::Kind::expression:
        if (!add_expression(token.content, summary)) return std::nullopt;
        break;
    }
  }
  return summary.take();
}

}  // namespace

bool is_plain_chatml(std::string_view jinja) {
  static const std::string kMessages =
      "{% for message in messages %}'<|im_start|>'{{ role }}'\n'{{ content }}'<|im_end|>\n'"
      "{% endfor %}";
  static const std::string kAsked =
      "{% if add_generation_prompt %}'<|im_start|>assistant\n'{% endif %}";
  // Of no effect: the caller always says whether it wants the prompt.
  static const std::string kDefault =
      "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}"
      "{% endif %}";
  const auto summary = summarize(jinja);
  return summary && (*summary == kMessages + kAsked || *summary == kDefault + kMessages + kAsked);
}

}  // namespace hearth
