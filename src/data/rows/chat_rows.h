// Rows of chats in the forms that datasets have, as one form: messages for a template.
#pragma once

#include <string>

#include "base/json.h"
#include "data/chat/messages.h"

namespace hearth {

// All throw input errors that start with `where` (FILE:LINE) and name the field.

/// {"messages": [...], "tools"?: [...]}.
Chat read_messages_row(const Json& row, const std::string& where);

/// {"prompt": [...], "completion": [...], "tools"?: [...]} with lists of messages.
Chat read_completion_row(const Json& row, const std::string& where);

/// {"instruction", "input"?, "output", "system"?, "history"?: [[user, assistant], ...]}: the user
/// says instruction and input, with a line break between where both are there. (LLaMA-Factory's
/// rule; the answers in the history are turns as the output is.)
Chat read_alpaca_row(const Json& row, const std::string& where);

/// {"conversations": [{"from", "value"}, ...], "system"?, "tools"?}. Those who speak: human or user,
/// gpt or assistant, system, function_call (its value the JSON of one call or a list of them, each
/// {"name", "arguments"}), observation or tool. Entries with role and content are messages.
Chat read_sharegpt_row(const Json& row, const std::string& where);

}  // namespace hearth
