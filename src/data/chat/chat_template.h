// Chats as text. This version renders ChatML; a model's template is recognised as ChatML, or its
// chats are refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace hearth {

struct Message {
  std::string role;
  std::string content;
};

enum class TrainOn { assistant, all };

/// A chat as text, and the spans of it whose tokens are trained, in order, none empty.
struct RenderedChat {
  std::string text;
  std::vector<TextSpan> trained;
};

/// Finds the template and makes sure that it is ChatML. `choice` is --chat-template (empty or
/// "chatml"); without one: chat_template.jinja of the model directory, else chat_template of its
/// tokenizer_config.json (a string, or a list of named ones: `default`). Input error when there is
/// none, or when it is another template; usage error for another choice.
void require_chatml(const std::string& model_directory, const std::string& choice,
                    bool follow_links = false);

/// Whether a Jinja template writes plain ChatML: for every message <|im_start|>ROLE\nCONTENT
/// <|im_end|>\n, then <|im_start|>assistant\n where a generation prompt is asked for, and nothing
/// else. Decided by what the template's tags do after Jinja's white space rules, not by spelling.
bool is_plain_chatml(std::string_view jinja);

/// The text of a chat. A turn of the assistant is trained from behind its header to the end of what
/// is written for it, <|im_end|>\n included; TrainOn::all trains everything.
RenderedChat render_chatml(const std::vector<Message>& messages, TrainOn train_on);

/// The text that asks for an answer: the chat and the header of an assistant turn.
std::string render_chatml_prompt(const std::vector<Message>& messages);

}  // namespace hearth
