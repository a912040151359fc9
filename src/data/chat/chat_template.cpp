#include "data/chat/chat_template.h"

#include <optional>

#include "base/error.h"
#include "data/chat/jinja_tokens.h"
#include "data/json_fields.h"
#include "model/model_files.h"

namespace hearth {
namespace {

constexpr std::string_view kHeader = "<|im_start|>";
constexpr std::string_view kEnd = "<|im_end|>\n";
constexpr std::string_view kPrompt = "<|im_start|>assistant\n";

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

// The template of a model directory and the file it stands in; nullopt when there is none.
struct FoundTemplate {
  std::string text;
  std::string where;
};

std::optional<FoundTemplate> find_template(const std::string& directory, bool follow_links) {
  const char* jinja = "chat_template.jinja";
  if (has_model_file(directory, jinja)) {
    const std::string path = model_file(directory, jinja, follow_links);
    return FoundTemplate{read_text_file(path, kMaxConfigBytes), path};
  }
  const char* name = "tokenizer_config.json";
  if (!has_model_file(directory, name)) return std::nullopt;
  const std::string path = model_file(directory, name, follow_links);
  const Json config = read_json_file(path, kMaxConfigBytes);
  const Json& found = member_or_null(config, "chat_template");
  if (found.is_null()) return std::nullopt;
  const std::string where = path + ": chat_template";
  if (found.is_string()) return FoundTemplate{found.as_string(), where};
  if (!found.is_array()) {
    throw input_error(where + ": a string or a list of named templates expected");
  }
  for (const Json& entry : found.as_array()) {
    const Json& entry_name = member_or_null(entry, "name");
    const Json& text = member_or_null(entry, "template");
    if (!entry_name.is_string() || !text.is_string()) {
      throw input_error(where + ": an entry without the strings name and template");
    }
    if (entry_name.as_string() == "default") return FoundTemplate{text.as_string(), where};
  }
  throw input_error(where + ": a list without an entry named 'default'");
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

void require_chatml(const std::string& model_directory, const std::string& choice,
                    bool follow_links) {
  if (choice == "chatml") return;
  if (!choice.empty()) {
    throw usage_error("--chat-template " + quoted(choice) +
                      ": this version renders ChatML only; the one choice is 'chatml'");
  }
  const auto found = find_template(model_directory, follow_links);
  if (!found) {
    throw input_error(model_directory +
                      ": no chat template (chat_template.jinja or tokenizer_config.json's "
                      "chat_template); --chat-template chatml renders the chats as ChatML");
  }
  if (!is_plain_chatml(found->text)) {
    throw input_error(
        found->where +
        ": this version renders ChatML only, and this template writes something else; "
        "--chat-template chatml renders the chats as ChatML all the same");
  }
}

RenderedChat render_chatml(const std::vector<Message>& messages, TrainOn train_on) {
  RenderedChat chat;
  for (const Message& message : messages) {
    chat.text.append(kHeader).append(message.role).append("\n");
    const auto begin = static_cast<uint32_t>(chat.text.size());
    chat.text.append(message.content).append(kEnd);
    if (train_on == TrainOn::assistant && message.role == "assistant") {
      chat.trained.push_back({begin, static_cast<uint32_t>(chat.text.size())});
    }
  }
  if (train_on == TrainOn::all && !chat.text.empty()) {
    chat.trained.push_back({0, static_cast<uint32_t>(chat.text.size())});
  }
  return chat;
}

std::string render_chatml_prompt(const std::vector<Message>& messages) {
  return render_chatml(messages, TrainOn::assistant).text.append(kPrompt);
}

}  // namespace hearth
