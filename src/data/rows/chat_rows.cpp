#include "data/rows/chat_rows.h"

#include <array>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "data/json_fields.h"

namespace hearth {
namespace {

/// Whether a turn says that it is not trained: "train": false, or "weight": 0 as OpenAI's format has
/// it.
bool says_untrained(const Json& turn, const std::string& where) {
  const Json &train = member_or_null(turn, "train"), &weight = member_or_null(turn, "weight");
  if (!train.is_null() && !train.is_bool()) {
    throw input_error(where + ".train: expected true or false, found " + shown(train));
  }
  const bool is_weight = weight.is_number() && (weight.as_double() == 0 || weight.as_double() == 1);
  if (!weight.is_null() && !is_weight) {
    throw input_error(where + ".weight: expected 0 or 1, found " + shown(weight));
  }
  const bool by_train = !train.is_null() && !train.as_bool();
  const bool by_weight = !weight.is_null() && weight.as_double() == 0;
  if (by_train != by_weight && !train.is_null() && !weight.is_null()) {
    throw input_error(where + ": train and weight contradict each other; give one");
  }
  return by_train || by_weight;
}

/// Appends the messages of a list.
void add_list(const Json& row, const char* field, const std::string& where, Chat& chat) {
  const Json& list = member_or_null(row, field);
  JsonArray messages = read_messages(list, where, field);
  for (size_t i = 0; i < messages.size(); ++i) {
    chat.untrained.push_back(
        says_untrained(messages[i], where + ": " + field + "[" + std::to_string(i) + "]"));
    chat.messages.push_back(std::move(messages[i]));
  }
}

Json message(const char* role, std::string content) {
  return JsonObject{{"role", role}, {"content", std::move(content)}};
}

const std::string& required_text(const Json& row, const char* field, const std::string& where) {
  const Json& value = member_or_null(row, field);
  if (!value.is_string()) {
    throw input_error(where + ": " + field + ": expected a string, found " + shown(value));
  }
  return value.as_string();
}

/// Empty where it is missing or null.
std::string optional_text(const Json& row, const char* field, const std::string& where) {
  return member_or_null(row, field).is_null() ? "" : required_text(row, field, where);
}

// Pairs of what the user said and what was answered.
void add_history(const Json& history, const std::string& where, JsonArray& messages) {
  if (history.is_null()) return;
  if (!history.is_array()) {
    throw input_error(where + ": history: expected a list of pairs of strings, found " +
                      shown(history));
  }
  for (size_t i = 0; i < history.as_array().size(); ++i) {
    const Json& pair = history.as_array()[i];
    if (!pair.is_array() || pair.as_array().size() != 2 || !pair.as_array()[0].is_string() ||
        !pair.as_array()[1].is_string()) {
      throw input_error(where + ": history[" + std::to_string(i) +
                        "]: expected a pair of strings (user, assistant)");
    }
    messages.push_back(message("user", pair.as_array()[0].as_string()));
    messages.push_back(message("assistant", pair.as_array()[1].as_string()));
  }
}

Json read_call(const Json& call, const std::string& where) {
  const Json& name = member_or_null(call, "name");
  const Json& arguments = member_or_null(call, "arguments");
  if (!name.is_string() || name.as_string().empty() ||
      !(arguments.is_object() || arguments.is_string() || arguments.is_null())) {
    throw input_error(where + ": expected {\"name\": ..., \"arguments\": {...}}");
  }
  Json function = JsonObject{{"name", name}};
  function["arguments"] = arguments.is_null() ? Json(JsonObject{}) : arguments;
  return JsonObject{{"type", "function"}, {"function", std::move(function)}};
}

// The value of a function_call: JSON of one call, or of a list of them.
Json message_of_calls(const std::string& value, const std::string& where) {
  Json json;
  try {
    json = parse_json(value, where);
  } catch (const Error&) {
    throw input_error(where +
                      ": expected the JSON of a call ({\"name\": ..., \"arguments\": {...}}), " +
                      "found " + quoted(value));
  }
  JsonArray calls;
  if (json.is_array()) {
    for (const Json& call : json.as_array()) calls.push_back(read_call(call, where));
  } else {
    calls.push_back(read_call(json, where));
  }
  if (calls.empty())
    throw input_error(where + ": expected a call of a function, found an empty list");
  Json turn = message("assistant", "");  // many templates read content whatever the turn is
  turn["tool_calls"] = std::move(calls);
  return turn;
}

constexpr std::array<std::pair<std::string_view, const char*>, 7> kSpeakers{{
    {"human", "user"},
    {"user", "user"},
    {"gpt", "assistant"},
    {"assistant", "assistant"},
    {"system", "system"},
    {"observation", "tool"},
    {"tool", "tool"},
}};

Json read_turn(const Json& turn, const std::string& where) {
  if (!turn.is_object()) {
    throw input_error(where + ": expected an object with from and value, found " + shown(turn));
  }
  const Json& from = member_or_null(turn, "from");
  if (!from.is_string()) {
    throw input_error(where + ".from: expected a string, found " + shown(from));
  }
  const Json& value = member_or_null(turn, "value");
  if (!value.is_string()) {
    throw input_error(where + ".value: expected a string, found " + shown(value));
  }
  if (from.as_string() == "function_call") {
    return message_of_calls(value.as_string(), where + ".value");
  }
  for (const auto& [speaker, role] : kSpeakers) {
    if (from.as_string() == speaker) return message(role, value.as_string());
  }
  throw input_error(
      where +
      ".from: expected human, user, gpt, assistant, system, function_call, observation "
      "or tool, found " +
      quoted(from.as_string()));
}

// Of at least one message.
void put_system_first(std::string system, const std::string& where, Chat& chat) {
  if (system.empty()) return;
  if (member_or_null(chat.messages[0], "role").as_string() == "system") {
    throw input_error(where +
                      ": system: the first turn is a system turn as well; keep one of the two");
  }
  chat.messages.insert(chat.messages.begin(), message("system", std::move(system)));
  if (!chat.untrained.empty()) chat.untrained.insert(chat.untrained.begin(), false);
}

}  // namespace

Chat read_messages_row(const Json& row, const std::string& where) {
  Chat chat;
  add_list(row, "messages", where, chat);
  chat.tools = read_tools(member_or_null(row, "tools"), where);
  return chat;
}

Chat read_completion_row(const Json& row, const std::string& where) {
  Chat chat;
  add_list(row, "prompt", where, chat);
  chat.prompt_messages = chat.messages.size();
  add_list(row, "completion", where, chat);
  if (find_assistant(chat.messages, chat.prompt_messages) == chat.messages.size()) {
    throw input_error(where + ": completion: no assistant turn; the completion must have one");
  }
  chat.tools = read_tools(member_or_null(row, "tools"), where);
  return chat;
}

Chat read_alpaca_row(const Json& row, const std::string& where) {
  Chat chat;
  add_history(member_or_null(row, "history"), where, chat.messages);
  std::string asked = required_text(row, "instruction", where);
  const std::string input = optional_text(row, "input", where);
  if (!asked.empty() && !input.empty()) asked += '\n';
  chat.messages.push_back(message("user", asked + input));
  chat.messages.push_back(message("assistant", required_text(row, "output", where)));
  put_system_first(optional_text(row, "system", where), where, chat);
  chat.prompt_messages = chat.messages.size() - 1;
  return chat;
}

Chat read_sharegpt_row(const Json& row, const std::string& where) {
  const Json& turns = member_or_null(row, "conversations");
  if (!turns.is_array() || turns.as_array().empty()) {
    throw input_error(where + ": conversations: expected a list of at least one turn, found " +
                      (turns.is_array() ? "an empty one" : shown(turns)));
  }
  Chat chat;
  if (!member_or_null(turns.as_array()[0], "role").is_null()) {
    add_list(row, "conversations", where, chat);
  } else {
    for (const Json& turn : turns.as_array()) {
      const std::string place =
          where + ": conversations[" + std::to_string(chat.messages.size()) + "]";
      chat.messages.push_back(read_turn(turn, place));
      chat.untrained.push_back(says_untrained(turn, place));
    }
  }
  put_system_first(optional_text(row, "system", where), where, chat);
  chat.tools = read_tools(member_or_null(row, "tools"), where);
  return chat;
}

}  // namespace hearth
