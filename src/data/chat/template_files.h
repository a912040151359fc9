// Finds the chat templates and special tokens of a model, and writes templates into a result.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "checkpoint/companion_files.h"
#include "data/chat/chat_template.h"

namespace hearth {

struct TemplateSource {
  std::string name;   // "default", "tool_use", ...
  std::string where;  // file (and field), for messages
  std::string text;
};

/// Searches as ChatTemplate does. A choice gives one source named "default", else returns all
/// templates of the model. Never empty.
std::vector<TemplateSource> find_templates(const TemplateOptions& options);

/// The templates that replace the base's in a result: the --chat-template of the run, or the
/// templates of the adapter that the run continued. With --template-args, these or the base's, with
/// the values as defaults (with_defaults). Empty: the base's own templates.
std::vector<TemplateSource> carried_templates(const TemplateOptions& options);

/// The file changes that put these templates into a result of the base in `model`:
/// chat_template.jinja and additional_chat_templates/, which transformers prefers, and
/// tokenizer_config.json for older readers. Removes the base's other templates. No templates: no
/// changes.
FileChanges template_changes(const std::vector<TemplateSource>& templates, const std::string& model,
                             bool follow_links);

/// Templates in saved state. Reading throws a storage error that starts with `where`.
Json templates_json(const std::vector<TemplateSource>& templates);
std::vector<TemplateSource> read_templates(const Json& list, const std::string& where);

/// bos_token, eos_token, ... as an object of texts: from tokenizer_config.json, and for older
/// models also from special_tokens_map.json.
Json find_special_tokens(const TemplateOptions& options);

}  // namespace hearth
