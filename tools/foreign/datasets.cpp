#include "foreign/datasets.h"

#include <map>
#include <set>

#include "base/error.h"

namespace hearth {
namespace {

/// `type` there, `format` here.
const std::map<std::string, std::string> kFormats{
    {"chat_template", "messages"}, {"messages", "messages"}, {"completion", "text"},
    {"pretrain", "text"},          {"text", "text"},         {"alpaca", "alpaca"},
    {"sharegpt", "sharegpt"},
};

/// Fields with the values that ask for what is the case anyway; none: any value.
const std::map<std::string, std::set<std::string>> kHarmless{
    {"split", {"train"}},
    {"ds_type", {"json", "text"}},
    {"name", {}},
    {"field", {"text"}},
    {"field_instruction", {"instruction"}},
    {"field_input", {"input"}},
    {"field_output", {"output"}},
    {"field_system", {"system"}},
    {"field_tools", {"tools"}},
    {"field_messages", {"messages", "conversations"}},
    {"message_field_role", {"role", "from"}},
    {"message_field_content", {"content", "value"}},
    {"message_field_training", {"train"}},
    {"chat_template", {"tokenizer_default"}},
    {"roles_to_train", {"assistant", "gpt"}},
    {"train_on_eos", {"turn"}},
    {"train_on_inputs", {"false"}},
    {"trust_remote_code", {"false"}},
};

/// Kinds of files that stand for a path when `data_files` names the files.
const std::set<std::string> kLoaders{"json", "text", "csv", "parquet"};

class Reader {
 public:
  Reader(const std::string& where, Problems& problems) : where_(where), problems_(problems) {}

  void read(const std::vector<ConfigEntry>& fields) {
    std::vector<std::string> files;
    std::string path, format;
    bool conversations = false;
    for (const ConfigEntry& field : fields) {
      if (field.is_null) continue;
      const std::string text = field.values.size() == 1 ? field.values[0] : "";
      if (field.key == "path" && !text.empty()) {
        path = text;
      } else if (field.key == "data_files" && !field.values.empty()) {
        files = field.values;
      } else if (field.key == "type") {
        format = format_of(field, text);
      } else {
        conversations |= field.key == "field_messages" && text == "conversations";
        check_field(field, text);
      }
    }
    if (conversations && format == "messages") format = "sharegpt";
    if (!format.empty()) formats_.insert(format);
    if (files.empty() && !path.empty()) files.push_back(path);
    if (!files.empty() && !path.empty() && path != files[0] && !kLoaders.contains(path)) {
      for (std::string& file : files) file = path + "/" + file;  // files of a folder
    }
    if (files.empty()) problems_.add(where_ + ": an entry without path; add the path of the file");
    result_.files.insert(result_.files.end(), files.begin(), files.end());
  }

  ForeignDatasets take() {
    if (formats_.size() == 1) result_.format = *formats_.begin();
    return std::move(result_);
  }

 private:
  std::string format_of(const ConfigEntry& field, const std::string& text) {
    const auto format = kFormats.find(text.substr(0, text.find('.')));
    if (format != kFormats.end()) return format->second;
    refuse(field, "expected chat_template, alpaca, sharegpt, completion or text; convert the file");
    return "";
  }

  void check_field(const ConfigEntry& field, const std::string& text) {
    if (field.key == "message_property_mappings") return check_mappings(field);
    const auto harmless = kHarmless.find(field.key);
    if (harmless == kHarmless.end()) {
      return refuse(field,
                    "this field has no counterpart; rename the fields of the rows, or remove it");
    }
    if (!harmless->second.empty() && !harmless->second.contains(text)) {
      refuse(field, "expected " + quoted(*harmless->second.begin()) +
                        "; rename the fields of the rows, or remove it");
    }
  }

  // Names of the fields of a message: those that are read under these names.
  void check_mappings(const ConfigEntry& field) {
    const std::set<std::pair<std::string, std::string>> also{{"role", "from"},
                                                             {"content", "value"}};
    for (const auto& fields : field.maps) {
      for (const ConfigEntry& each : fields) {
        const std::string name = each.values.size() == 1 ? each.values[0] : "";
        if (name != each.key && !also.contains({each.key, name})) {
          refuse(each, "expected " + quoted(each.key) + "; rename the fields of the messages");
        }
      }
    }
    if (field.maps.empty()) refuse(field, "expected a map");
  }

  void refuse(const ConfigEntry& field, const std::string& what) {
    problems_.add(where_ + "." + field.key + " (line " + std::to_string(field.line) +
                  "): " + (field.values.size() == 1 ? quoted(field.values[0]) + ": " : "") + what);
  }

  const std::string& where_;
  Problems& problems_;
  ForeignDatasets result_;
  std::set<std::string> formats_;
};

}  // namespace

bool is_dataset_key(const std::string& name) {
  return name == "datasets" || name == "test-datasets" || name == "data" || name == "eval-data";
}

ForeignDatasets translate_datasets(const ConfigEntry& entry, const std::string& where,
                                   Problems& problems) {
  Reader reader(where, problems);
  for (const auto& fields : entry.maps) reader.read(fields);
  ForeignDatasets result = reader.take();
  result.files.insert(result.files.end(), entry.values.begin(), entry.values.end());
  return result;
}

}  // namespace hearth
