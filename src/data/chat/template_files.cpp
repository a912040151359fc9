#include "data/chat/template_files.h"

#include <algorithm>

#include "base/error_format.h"
#include "base/file_ops.h"
#include "base/setting.h"
#include "base/utf8.h"
#include "checkpoint/model_files.h"
#include "data/json_fields.h"

namespace hearth {
namespace {

constexpr const char* kConfig = "tokenizer_config.json";
constexpr const char* kFile = "chat_template.jinja";

constexpr const char* kChatml =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] "
    "+ '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\\n' }}{% endif %}";

Json read_config(const TemplateOptions& options, const char* name) {
  if (!has_model_file(options.model, name)) return JsonObject{};
  const std::string path = model_file(options.model, name, options.follow_links);
  Json config = read_json_file(path, kMaxConfigBytes);
  if (!config.is_object()) throw input_error(path + ": expected a JSON object");
  return config;
}

std::string read_template(const std::string& path) {
  std::string text = read_text_file(path, kMaxConfigBytes);
  if (find_invalid_utf8(text) != std::string::npos) throw input_error(path + ": invalid UTF-8");
  return text;
}

// chat_template.jinja and the folder of more, which replace what tokenizer_config.json says.
std::vector<TemplateSource> find_files(const TemplateOptions& options) {
  std::vector<TemplateSource> found;
  if (has_model_file(options.model, kFile)) {
    const std::string path = model_file(options.model, kFile, options.follow_links);
    found.push_back({"default", path, read_template(path)});
  }
  for (const std::string& file : template_files(options.model)) {
    const std::string path = model_file(options.model, file, options.follow_links);
    const size_t begin = file.find('/') + 1;
    found.push_back({file.substr(begin, file.rfind('.') - begin), path, read_template(path)});
  }
  return found;
}

std::vector<TemplateSource> find_in_config(const TemplateOptions& options) {
  const Json config = read_config(options, kConfig);
  const Json& found = member_or_null(config, "chat_template");
  if (found.is_null()) return {};
  const std::string where = options.model + "/" + kConfig + ": chat_template";
  if (found.is_string()) return {{"default", where, found.as_string()}};
  if (!found.is_array()) {
    throw input_error(where + ": expected a string or a list of named templates");
  }
  std::vector<TemplateSource> sources;
  for (const Json& entry : found.as_array()) {
    const Json& name = member_or_null(entry, "name");
    const Json& text = member_or_null(entry, "template");
    if (!name.is_string() || !text.is_string()) {
      throw input_error(where + ": expected the strings name and template in each entry");
    }
    sources.push_back({name.as_string(), where + " " + quoted(name.as_string()), text.as_string()});
  }
  if (sources.empty()) throw input_error(where + ": no entry is named 'default'");
  return sources;
}

std::vector<TemplateSource> find_in_model(const TemplateOptions& options) {
  std::vector<TemplateSource> found = find_files(options);
  return found.empty() ? find_in_config(options) : found;
}

}  // namespace

std::vector<TemplateSource> find_templates(const TemplateOptions& options) {
  if (options.choice == "chatml") return {{"default", "chatml", kChatml}};
  if (!options.choice.empty() && file_info(options.choice).kind != FileKind::none) {
    return {{"default", options.choice, read_template(options.choice)}};
  }
  std::vector<TemplateSource> found = find_in_model(options);
  if (!options.choice.empty()) {
    std::string names = "'chatml'";
    for (TemplateSource& source : found) {
      if (source.name == options.choice) return {{"default", source.where, source.text}};
      names += ", " + quoted(source.name);
    }
    throw usage_error("{}: neither a file nor a known template ({})",
                      spelled(Setting::chat_template, quoted(options.choice)), names);
  }
  if (found.empty()) {
    throw input_error(
        "{}: no chat template (chat_template.jinja or tokenizer_config.json's chat_template); {} "
        "renders "
        "chats as ChatML",
        options.model, spelled(Setting::chat_template, "chatml"));
  }
  return found;
}

Json find_special_tokens(const TemplateOptions& options) {
  const Json config = read_config(options, kConfig);
  // With added_tokens_decoder a configuration is whole; before, the tokens stood in a file of theirs.
  const bool whole = config.find("added_tokens_decoder") != nullptr;
  const Json map = whole ? Json() : read_config(options, "special_tokens_map.json");
  Json tokens = JsonObject{};
  for (const char* name : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                           "cls_token", "mask_token"}) {
    const Json& mapped = member_or_null(map, name);
    const Json& given = mapped.is_null() ? member_or_null(config, name) : mapped;
    if (given.is_null()) continue;
    const Json& text = given.is_object() ? member_or_null(given, "content") : given;
    if (!text.is_string()) {
      throw input_error(options.model + "/" + kConfig + ": " + name +
                        ": expected a string or an object with the string content");
    }
    tokens[name] = text;
  }
  return tokens;
}

}  // namespace hearth
