// Where the chat templates of a model stand, and the special tokens they may name.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "data/chat/chat_template.h"

namespace hearth {

struct TemplateSource {
  std::string name;   // "default", "tool_use", ...
  std::string where;  // file (and field), for messages
  std::string text;
};

/// The rule of ChatTemplate: one source under the name "default" for a choice, else all that the
/// model has. Never empty.
std::vector<TemplateSource> find_templates(const TemplateOptions& options);

/// bos_token, eos_token, ... of tokenizer_config.json (in files of older versions also of
/// special_tokens_map.json) as an object of texts.
Json find_special_tokens(const TemplateOptions& options);

}  // namespace hearth
