// Reads and checks the messages of a chat, from rows and --messages files.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/json.h"

namespace hearth {

/// A chat, ready for a template.
struct Chat {
  /// Objects with a role (a text, not empty) and content (a text; may be missing in a turn of the
  /// assistant with tool_calls). Other members are unchanged.
  JsonArray messages;
  Json tools;  // a list of objects, null for none
  /// Per message: whether it must not be trained; empty: none.
  std::vector<bool> untrained = {};
  /// Number of messages in the prompt of a prompt/completion row; 0 without a prompt part.
  size_t prompt_messages = 0;
};

/// Reads the messages of a list, and joins content that is a list of text parts. Input error that
/// starts with `where` and names the message and the field. `field`: the name of the list.
JsonArray read_messages(const Json& list, const std::string& where,
                        const std::string& field = "messages");

/// Reads the tools of a row: a list of objects, or such a list as JSON text (found in some
/// datasets). Null, an empty list and an empty text mean no tools. Input error for anything else.
Json read_tools(const Json& tools, const std::string& where);

/// Reads {"messages": [...], "tools"?: [...]} or a bare list of messages.
Chat read_chat(const Json& value, const std::string& where);

/// Index of the first message of the assistant at or after `first`; messages.size() if there is
/// none.
size_t find_assistant(const JsonArray& messages, size_t first = 0);

}  // namespace hearth
