#include "data/chat/template_files.h"

#include <algorithm>

#include "base/error_format.h"
#include "base/file_ops.h"
#include "base/setting.h"
#include "base/utf8.h"
#include "checkpoint/json_edit.h"
#include "checkpoint/model_files.h"
#include "data/chat/template_args.h"
#include "data/json_fields.h"

namespace hearth {
namespace {

constexpr const char* kConfig = "tokenizer_config.json";
constexpr const char* kFile = "chat_template.jinja";

constexpr const char* kChatml =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] "
    "+ '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\\n' }}{% endif %}";

// A model's or an adapter's.
struct Folder {
  const std::string& path;
  bool follow_links = false;
};

Json read_config(const Folder& folder, const char* name) {
  if (!has_model_file(folder.path, name)) return JsonObject{};
  const std::string path = model_file(folder.path, name, folder.follow_links);
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
std::vector<TemplateSource> find_files(const Folder& folder) {
  std::vector<TemplateSource> found;
  if (has_model_file(folder.path, kFile)) {
    const std::string path = model_file(folder.path, kFile, folder.follow_links);
    found.push_back({"default", path, read_template(path)});
  }
  for (const std::string& file : template_files(folder.path)) {
    const std::string path = model_file(folder.path, file, folder.follow_links);
    const size_t begin = file.find('/') + 1;
    found.push_back({file.substr(begin, file.rfind('.') - begin), path, read_template(path)});
  }
  return found;
}

std::vector<TemplateSource> find_in_config(const Folder& folder) {
  const Json config = read_config(folder, kConfig);
  const Json& found = member_or_null(config, "chat_template");
  if (found.is_null()) return {};
  const std::string where = folder.path + "/" + kConfig + ": chat_template";
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

std::vector<TemplateSource> find_in(const Folder& folder) {
  std::vector<TemplateSource> found = find_files(folder);
  return found.empty() ? find_in_config(folder) : found;
}

// An adapter's directory carries the templates that it was trained with.
std::vector<TemplateSource> find_in_model(const TemplateOptions& options) {
  if (!options.adapter.empty()) {
    std::vector<TemplateSource> found = find_in({options.adapter, options.follow_links});
    if (!found.empty()) return found;
  }
  return find_in({options.model, options.follow_links});
}

// Names that may be those of files.
bool is_plain(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_';
  };
  return !name.empty() && name.size() <= 128 && std::all_of(name.begin(), name.end(), allowed);
}

// tokenizer_config.json's value for these templates.
Json config_value(const std::vector<TemplateSource>& templates) {
  if (templates.size() == 1 && templates[0].name == "default") return templates[0].text;
  return templates_json(templates);
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

namespace {

std::vector<TemplateSource> carried_without_args(const TemplateOptions& options) {
  if (!options.choice.empty()) return find_templates(options);
  if (options.adapter.empty()) return {};
  std::vector<TemplateSource> own, of_base;
  try {
    own = find_in({options.adapter, options.follow_links});
    of_base = find_in({options.model, options.follow_links});
  } catch (const Error&) {
    return {};  // templates that cannot be used: said where a chat needs one
  }
  const bool same = std::equal(own.begin(), own.end(), of_base.begin(), of_base.end(),
                               [](const TemplateSource& a, const TemplateSource& b) {
                                 return a.name == b.name && a.text == b.text;
                               });
  if (same) own.clear();
  return own;
}

}  // namespace

std::vector<TemplateSource> carried_templates(const TemplateOptions& options) {
  const Json args = template_args(options.args);
  std::vector<TemplateSource> carried = carried_without_args(options);
  if (args.as_object().empty()) return carried;
  if (carried.empty()) {
    try {
      carried = find_in_model(options);
    } catch (const Error&) {  // said where a chat needs one
    }
  }
  for (TemplateSource& source : carried) source.text = with_defaults(source.text, args);
  return carried;
}

FileChanges template_changes(const std::vector<TemplateSource>& templates, const std::string& model,
                             bool follow_links) {
  FileChanges changes;
  if (templates.empty()) return changes;
  // What the base has of templates would win over ours, or contradict it.
  for (const std::string& file : template_files(model)) changes[file] = std::nullopt;
  changes[kFile] = std::nullopt;
  changes["chat_template.json"] = std::nullopt;
  if (has_model_file(model, kConfig)) {
    const std::string path = model_file(model, kConfig, follow_links);
    const std::string text = read_text_file(path, kMaxConfigBytes);
    changes[kConfig] = with_member(text, "chat_template", config_value(templates), path);
  }
  const auto is_default = [](const TemplateSource& source) { return source.name == "default"; };
  const auto is_file = [](const TemplateSource& source) { return is_plain(source.name); };
  if (std::none_of(templates.begin(), templates.end(), is_default) ||
      !std::all_of(templates.begin(), templates.end(), is_file)) {
    return changes;  // in tokenizer_config.json alone: readers prefer files, and would miss some
  }
  for (const TemplateSource& source : templates) {
    changes[is_default(source) ? kFile : "additional_chat_templates/" + source.name + ".jinja"] =
        source.text;
  }
  return changes;
}

Json templates_json(const std::vector<TemplateSource>& templates) {
  JsonArray list;
  for (const TemplateSource& source : templates) {
    list.push_back(JsonObject{{"name", source.name}, {"template", source.text}});
  }
  return list;
}

std::vector<TemplateSource> read_templates(const Json& list, const std::string& where) {
  std::vector<TemplateSource> templates;
  const auto refuse = [&] { return storage_error(where + ": no list of named chat templates"); };
  if (!list.is_array()) throw refuse();
  for (const Json& entry : list.as_array()) {
    const Json& name = member_or_null(entry, "name");
    const Json& text = member_or_null(entry, "template");
    if (!name.is_string() || !text.is_string()) throw refuse();
    templates.push_back({name.as_string(), where, text.as_string()});
  }
  return templates;
}

Json find_special_tokens(const TemplateOptions& options) {
  const Folder folder{options.model, options.follow_links};
  const Json config = read_config(folder, kConfig);
  // With added_tokens_decoder a configuration is whole; before, the tokens stood in a file of theirs.
  const bool whole = config.find("added_tokens_decoder") != nullptr;
  const Json map = whole ? Json() : read_config(folder, "special_tokens_map.json");
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
