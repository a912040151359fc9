// The messages of a chat as rows and --messages files give them, checked.
#pragma once

#include <cstddef>
#include <string>

#include "base/json.h"

namespace hearth {

/// A chat, ready for a template.
struct Chat {
  /// Objects with a role (a text that is not empty) and content (a text; missing only in a turn of
  /// the assistant with tool_calls). All other members are as they were given.
  JsonArray messages;
  Json tools;  // a list of objects, null for none
  /// So many messages ask (the prompt of a prompt/completion row), the others answer. Without a
  /// prompt part: 0.
  size_t prompt_messages = 0;
};

/// The messages of a list; a list of text parts is joined to one text. Input error, starting with
/// `where`, that names the message and the field; `field` is the name of the list itself.
JsonArray read_messages(const Json& list, const std::string& where,
                        const std::string& field = "messages");

/// The tools of a row: a list of objects, or the text of one as JSON (some datasets have that). Null,
/// an empty list and an empty text are none. Input error for anything else.
Json read_tools(const Json& tools, const std::string& where);

/// A row {"messages": [...], "tools"?: [...]} or a bare list of messages.
Chat read_chat(const Json& value, const std::string& where);

/// The number of the first message of the assistant from `first` on; messages.size() without one.
size_t find_assistant(const JsonArray& messages, size_t first = 0);

}  // namespace hearth
