#include "data/chat/chat_template.h"

#include <algorithm>
#include <charconv>
#include <ctime>

#include "base/error_format.h"
#include "base/setting.h"
#include "data/chat/template_args.h"
#include "data/chat/template_files.h"
#include "data/json_fields.h"
#include "jinja/jinja.h"

namespace hearth {
namespace {

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm day{};
  localtime_r(&now, &day);
  char text[16];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d", &day));
}

// A date that exists, as YYYY-MM-DD.
std::string checked_date(const std::string& date) {
  if (date.empty()) return today();
  std::tm day{};
  const char* end = date.size() == 10 ? strptime(date.c_str(), "%Y-%m-%d", &day) : nullptr;
  const int month_day = day.tm_mday;
  timegm(&day);  // which moves a day that the month lacks
  if (end == nullptr || *end != '\0' || day.tm_mday != month_day || date[0] == ' ') {
    throw usage_error("{}: expected a date YYYY-MM-DD",
                      spelled(Setting::template_date, quoted(date)));
  }
  return date;
}

// A message as transformers hands it to the template: members that are null are left out, and
// reasoning has both of its names.
jinja::Value message_value(const Json& message, int64_t number) {
  auto dict = std::make_shared<jinja::Dict>();
  const jinja::Value all = jinja::Value::from_json(message);
  const jinja::Value* reasoning = nullptr;
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    const jinja::Value* found = all.as_dict().find(std::string_view(name));
    if (reasoning == nullptr && found != nullptr && !found->is_none()) reasoning = found;
  }
  if (reasoning != nullptr) dict->items.emplace_back("thinking", *reasoning);
  for (const auto& [key, value] : all.as_dict().items) {
    if (value.is_none()) continue;
    if (reasoning != nullptr && key.bytes() == "thinking") {
      dict->items[0].second = value;
    } else {
      dict->items.emplace_back(key, value);
    }
  }
  if (reasoning != nullptr) dict->set("reasoning_content", *reasoning);
  dict->depth = all.depth();
  dict->message = number;
  return dict;
}

std::vector<TextSpan> turns_of(const jinja::Rendered& rendered, size_t messages) {
  std::vector<TextSpan> turns(messages);
  std::vector<uint8_t> pieces(messages);
  for (const auto& piece : rendered.pieces) {
    if (piece.message < 0) continue;
    const auto i = static_cast<size_t>(piece.message);
    pieces[i] = pieces[i] == 0 ? 1 : 2;
    turns[i] = pieces[i] == 1 ? span_of(piece.begin, piece.end) : TextSpan{};
  }
  return turns;
}

}  // namespace

struct ChatTemplate::Parts {
  struct Named {
    std::string name;
    std::string text;
    jinja::Template parsed;
  };
  std::vector<Named> templates;
  std::string where;
  Json special_tokens;
  Json args = JsonObject{};
  std::string date;

  const jinja::Template& choose(bool with_tools) const {
    for (const std::string_view name : {"tool_use", "default"}) {
      if (!with_tools && name == "tool_use") continue;
      for (const Named& each : templates) {
        if (each.name == name) return each.parsed;
      }
    }
    throw input_error(where + ": no entry is named 'default'");
  }
};

namespace {

using Variables = std::vector<std::pair<std::string, jinja::Value>>;

Variables variables_of(std::span<const jinja::Value> messages, const jinja::Value& tools,
                       bool prompt, const Json& special_tokens, const Json& args) {
  Variables variables;
  if (special_tokens.is_object()) {
    for (const auto& [name, token] : special_tokens.as_object()) {
      variables.emplace_back(name, jinja::Value::from_json(token));
    }
  }
  for (const auto& [name, value] : args.as_object()) {
    variables.emplace_back(name, jinja::Value::from_json(value));
  }
  variables.emplace_back("messages", jinja::Value::list({messages.begin(), messages.end()}));
  variables.emplace_back("tools", tools);
  variables.emplace_back("documents", jinja::Value());
  variables.emplace_back("add_generation_prompt", prompt);
  return variables;
}

}  // namespace

// Templates change no value that they are given, so renderings may share these.
struct ChatValues::Parts {
  jinja::Values messages;
  jinja::Value tools;
};

ChatValues::ChatValues(std::span<const Json> messages, const Json& tools,
                       const std::string& where) {
  auto parts = std::make_shared<Parts>();
  try {
    parts->messages.reserve(messages.size());
    for (const Json& message : messages) {
      const auto number = static_cast<int64_t>(parts->messages.size());
      parts->messages.push_back(message_value(message, number));
    }
    parts->tools = jinja::Value::from_json(tools);
  } catch (const jinja::TemplateError& error) {
    throw input_error(where + ": " + error.what());
  }
  parts_ = std::move(parts);
}

size_t ChatValues::messages() const { return parts_->messages.size(); }

ChatTemplate::ChatTemplate(const TemplateOptions& options) {
  auto parts = std::make_unique<Parts>();
  for (TemplateSource& source : find_templates(options)) {
    parts->where = source.where;
    parts->templates.push_back(
        {source.name, source.text, jinja::Template(source.text, source.where)});
  }
  parts->special_tokens = find_special_tokens(options);
  parts->args = template_args(options.args);
  parts->date = checked_date(options.date);
  parts_ = std::move(parts);
}

ChatTemplate::ChatTemplate(const std::string& source, const std::string& name,
                           const Json& special_tokens, const std::string& date) {
  auto parts = std::make_unique<Parts>();
  parts->where = name;
  parts->templates.push_back({"default", source, jinja::Template(source, name)});
  parts->special_tokens = special_tokens;
  parts->date = checked_date(date);
  parts_ = std::move(parts);
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

RenderedChat ChatTemplate::render(std::span<const Json> messages, const Json& tools,
                                  bool add_generation_prompt, const std::string& where,
                                  int64_t* steps) const {
  const ChatValues chat(messages, tools, where);
  return render(chat, messages.size(), add_generation_prompt, where, steps);
}

RenderedChat ChatTemplate::render(const ChatValues& of, size_t count, bool add_generation_prompt,
                                  const std::string& where, int64_t* steps) const {
  const jinja::Value& tools = of.parts_->tools;
  const jinja::Template& chosen = parts_->choose(!tools.is_none());
  Variables variables;
  try {
    variables = variables_of(std::span(of.parts_->messages).first(count), tools,
                             add_generation_prompt, parts_->special_tokens, parts_->args);
  } catch (const jinja::TemplateError& error) {
    throw input_error(where + ": " + error.what());
  }
  jinja::Limits limits;
  if (steps != nullptr) limits.steps = std::min(limits.steps, *steps);
  const int64_t given = limits.steps;
  RenderedChat chat;
  try {
    jinja::Rendered rendered = chosen.render(variables, parts_->date, where, limits);
    for (const auto& [begin, end] : rendered.generated) {
      chat.generated.push_back(span_of(begin, end));
    }
    chat.generated_hidden = rendered.generated_hidden;
    chat.turns = turns_of(rendered, count);
    chat.text = std::move(rendered.text);
  } catch (const Error&) {
    if (steps != nullptr) *steps -= given - limits.steps;
    throw;
  }
  if (steps != nullptr) *steps -= given - limits.steps;
  return chat;
}

bool ChatTemplate::marks_generation(const Json& tools) const {
  return parts_->choose(!tools.is_null()).marks_generation();
}

std::string ChatTemplate::identity() const {
  Json identity = JsonObject{{"special_tokens", parts_->special_tokens}};
  if (!parts_->args.as_object().empty()) identity["args"] = parts_->args;
  for (const Parts::Named& each : parts_->templates) {
    identity["templates"].push_back(JsonArray{each.name, each.text});
    if (each.parsed.asks_date()) identity["date"] = parts_->date;
  }
  return identity.dump();
}

}  // namespace hearth
