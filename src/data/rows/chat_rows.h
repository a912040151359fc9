// Converts the chat rows of common datasets to one form: messages for a template.
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

/// {"instruction", "input"?, "output", "system"?, "history"?: [[user, assistant], ...]}. Joins
/// instruction and input with a line break into one user message, as LLaMA-Factory does. The
/// answers in the history become turns of the assistant.
Chat read_alpaca_row(const Json& row, const std::string& where);

/// {"conversations": [{"from", "value"}, ...], "system"?, "tools"?}. `from` is human or user, gpt
/// or assistant, system, function_call, observation or tool. The value of function_call is JSON:
/// one call {"name", "arguments"}, or a list of calls. Accepts entries with role and content as
/// messages.
Chat read_sharegpt_row(const Json& row, const std::string& where);

}  // namespace hearth
