// Where the chat templates of a model stand, how a result carries them, and the special tokens that
// they may name.
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

/// The rule of ChatTemplate: one source under the name "default" for a choice, else all that the
/// model has. Never empty.
std::vector<TemplateSource> find_templates(const TemplateOptions& options);

/// The templates that a result carries in place of its base's: the --chat-template of the run, or
/// those of the adapter that it went on from. Empty: the base's own.
std::vector<TemplateSource> carried_templates(const TemplateOptions& options);

/// The files by which a result of the base in `model` carries these templates: chat_template.jinja and
/// additional_chat_templates/, which transformers prefers, and the same in tokenizer_config.json for
/// readers that know nothing else. No other template of the base is left to contradict them. Nothing
/// for no templates.
FileChanges template_changes(const std::vector<TemplateSource>& templates, const std::string& model,
                             bool follow_links);

/// Templates in saved state. Reading: a storage error that starts with `where`.
Json templates_json(const std::vector<TemplateSource>& templates);
std::vector<TemplateSource> read_templates(const Json& list, const std::string& where);

/// bos_token, eos_token, ... of tokenizer_config.json (in files of older versions also of
/// special_tokens_map.json) as an object of texts.
Json find_special_tokens(const TemplateOptions& options);

}  // namespace hearth
