#include "data/chat/messages.h"

#include "base/error.h"
#include "data/json_fields.h"

namespace hearth {
namespace {

bool is_empty(const Json& value) {
  return value.is_null() || (value.is_array() && value.as_array().empty());
}

std::string join_parts(const Json& parts, const std::string& where) {
  std::string text;
  for (size_t i = 0; i < parts.as_array().size(); ++i) {
    const Json& part = parts.as_array()[i];
    const Json& type = member_or_null(part, "type");
    const Json& part_text = member_or_null(part, "text");
    if (!type.is_string() || type.as_string() != "text" || !part_text.is_string()) {
      throw input_error(where + "[" + std::to_string(i) +
                        "]: only parts {\"type\": \"text\", \"text\": ...} are read");
    }
    text += part_text.as_string();
  }
  return text;
}

Json read_message(const Json& entry, const std::string& where) {
  if (!entry.is_object()) {
    throw input_error(where + ": expected an object with role and content, found " + shown(entry));
  }
  const Json& role = member_or_null(entry, "role");
  if (!role.is_string() || role.as_string().empty()) {
    throw input_error(where + ".role: expected a text that is not empty, found " + shown(role));
  }
  const Json& content = member_or_null(entry, "content");
  if (content.is_string()) return entry;
  if (content.is_array()) {
    Json message = entry;
    message["content"] = join_parts(content, where + ".content");
    return message;
  }
  const bool calls = role.as_string() == "assistant" &&
                     member_or_null(entry, "tool_calls").is_array() &&
                     !is_empty(member_or_null(entry, "tool_calls"));
  if (!content.is_null() || !calls) {
    throw input_error(where + ".content: expected a text or a list of text parts, found " +
                      shown(content));
  }
  return entry;
}

}  // namespace

JsonArray read_messages(const Json& list, const std::string& where, const std::string& field) {
  if (!list.is_array() || list.as_array().empty()) {
    throw input_error(where + ": " + field + ": expected a list of at least one message, found " +
                      (list.is_array() ? "an empty one" : shown(list)));
  }
  JsonArray messages;
  messages.reserve(list.as_array().size());
  for (const Json& entry : list.as_array()) {
    messages.push_back(
        read_message(entry, where + ": " + field + "[" + std::to_string(messages.size()) + "]"));
  }
  return messages;
}

Json read_tools(const Json& given, const std::string& where) {
  Json tools = given;
  if (given.is_string()) {
    if (given.as_string().empty()) return Json();
    try {
      tools = parse_json(given.as_string(), where);
    } catch (const Error&) {
      throw input_error(where + ": tools: expected a list of objects or its JSON, found " +
                        shown(given));
    }
  }
  if (is_empty(tools)) return Json();
  if (!tools.is_array()) {
    throw input_error(where + ": tools: expected a list of objects, found " + shown(tools));
  }
  for (size_t i = 0; i < tools.as_array().size(); ++i) {
    const Json& tool = tools.as_array()[i];
    if (!tool.is_object()) {
      throw input_error(where + ": tools[" + std::to_string(i) + "]: expected an object, found " +
                        shown(tool));
    }
  }
  return tools;
}

Chat read_chat(const Json& value, const std::string& where) {
  Chat chat;
  if (value.is_object()) {
    chat.messages = read_messages(member_or_null(value, "messages"), where);
    chat.tools = read_tools(member_or_null(value, "tools"), where);
  } else {
    chat.messages = read_messages(value, where);
  }
  return chat;
}

size_t find_assistant(const JsonArray& messages, size_t first) {
  size_t i = first;
  while (i < messages.size() && member_or_null(messages[i], "role").as_string() != "assistant") ++i;
  return i;
}

}  // namespace hearth
