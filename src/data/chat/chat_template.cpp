#include "data/chat/chat_template.h"

#include "base/error.h"
#include "data/chat/plain_chatml.h"
#include "data/chat/template_files.h"
#include "data/json_fields.h"

namespace hearth {

struct ChatTemplate::Parts {
  std::vector<TemplateSource> sources;
  Json special_tokens;
  std::string date;
  const TemplateSource& source(const Json& tools) const {
    for (const char* name : {"tool_use", "default"}) {
      if (tools.is_null() && std::string_view(name) == "tool_use") continue;
      for (const TemplateSource& each : sources) {
        if (each.name == name) return each;
      }
    }
    throw input_error(sources[0].where + ": a list without an entry named 'default'");
  }
};

ChatTemplate::ChatTemplate(const TemplateOptions& options)
    : parts_(new Parts{find_templates(options), find_special_tokens(options), options.date}) {
  for (const TemplateSource& each : parts_->sources) {
    if (!is_plain_chatml(each.text)) {
      throw input_error(
          each.where +
          ": this version renders ChatML only, and this template writes something else; "
          "--chat-template chatml renders the chats as ChatML all the same");
    }
  }
}

ChatTemplate::ChatTemplate(const std::string& source, const std::string& name,
                           const Json& special_tokens, const std::string& date)
    : parts_(new Parts{{{"default", name, source}}, special_tokens, date}) {}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

RenderedChat ChatTemplate::render(std::span<const Json> messages, const Json& tools,
                                  bool add_generation_prompt, const std::string&) const {
  parts_->source(tools);
  RenderedChat chat;
  for (const Json& message : messages) {
    const auto begin = static_cast<uint32_t>(chat.text.size());
    const Json& content = member_or_null(message, "content");
    chat.text.append("<|im_start|>").append(member_or_null(message, "role").as_string());
    chat.text.append("\n").append(content.is_null() ? "" : content.as_string());
    chat.text.append("<|im_end|>\n");
    chat.turns.push_back({begin, static_cast<uint32_t>(chat.text.size())});
  }
  if (add_generation_prompt) chat.text.append("<|im_start|>assistant\n");
  return chat;
}

bool ChatTemplate::marks_generation(const Json&) const { return false; }

std::string ChatTemplate::identity() const {
  std::string identity = parts_->special_tokens.dump();
  for (const TemplateSource& each : parts_->sources) identity += each.name + "\n" + each.text;
  return identity;
}

}  // namespace hearth
