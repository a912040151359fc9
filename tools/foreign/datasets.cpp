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
    {"ds_type", {"json", "text", "csv", "parquet"}},
    {"name", {}},
    {"message_field_training", {"train"}},
    {"chat_template", {"tokenizer_default"}},
    {"roles_to_train", {"assistant", "gpt"}},
    {"train_on_eos", {"turn"}},
    {"train_on_inputs", {"false"}},
    {"trust_remote_code", {"false"}},
};

/// Keys that name a column, and the field that it is read as.
const std::map<std::string, std::string> kColumns{
    {"field", "text"},          {"field_instruction", "instruction"}, {"field_input", "input"},
    {"field_output", "output"}, {"field_system", "system"},           {"field_tools", "tools"},
};

/// Kinds of files that stand for a path when `data_files` names the files.
const std::set<std::string> kLoaders{"json", "text", "csv", "parquet"};

const char* const kRename = "; rename the fields of the messages";

/// How the messages of a chat name who speaks and what.
struct MessageNames {
  std::string role, content;  // empty: not given
  bool sharegpt() const { return role == "from" || content == "value"; }
  bool openai() const { return role == "role" || content == "content"; }
};

class Reader {
 public:
  Reader(const std::string& where, const std::string& file, Problems& problems)
      : where_(where), file_(file), problems_(problems) {}

  void read(const std::vector<ConfigEntry>& fields, bool only_one) {
    std::vector<std::string> files, columns;
    std::string path, format, messages;
    MessageNames names;
    for (const ConfigEntry& field : fields) {
      if (field.is_null) continue;
      const std::string text = text_of(field);
      if (field.key == "path" && !text.empty()) {
        path = text;
      } else if (field.key == "data_files" && !field.values.empty()) {
        files = field.values;
      } else if (field.key == "type" && field.maps.size() == 1) {
        format = "alpaca";
        for (const ConfigEntry& part : field.maps[0]) add_column(part, columns);
      } else if (field.key == "type") {
        format = format_of(field, text);
      } else if (field.key == "field_messages") {
        messages = text;
      } else if (field.key == "split") {
        read_split(field, text, only_one);
      } else if (kColumns.contains(field.key)) {
        add_column(field, columns);
      } else {
        check_field(field, text, names);
      }
    }
    if (format == "messages" || (format.empty() && !messages.empty())) {
      const bool sharegpt = names.sharegpt() || (messages == "conversations" && !names.openai());
      const std::string read_as = sharegpt ? "conversations" : "messages";
      if (!messages.empty() && messages != read_as) columns.push_back(read_as + "=" + messages);
      if (sharegpt) format = "sharegpt";
    }
    if (!format.empty()) formats_.insert(format);
    take_columns(columns);
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
  static std::string text_of(const ConfigEntry& field) {
    return field.values.size() == 1 ? field.values[0] : "";
  }

  std::string format_of(const ConfigEntry& field, const std::string& text) {
    const auto format = kFormats.find(text.substr(0, text.find('.')));
    if (format != kFormats.end()) return format->second;
    refuse(field, "expected chat_template, alpaca, sharegpt, completion or text; convert the file");
    return "";
  }

  void add_column(const ConfigEntry& field, std::vector<std::string>& columns) {
    if (field.is_null) return;
    const auto read_as = kColumns.find(field.key);
    const std::string column = text_of(field);
    if (read_as == kColumns.end() || column.empty()) {
      return refuse(field,
                    "this field has no counterpart; remove it, and write such texts into the "
                    "rows");
    }
    if (column != read_as->second) columns.push_back(read_as->second + "=" + column);
  }

  // Columns hold for all files.
  void take_columns(const std::vector<std::string>& columns) {
    if (read_ > 0 && columns != result_.columns) {
      problems_.add(where_ +
                    ": the entries name different fields; --columns holds for all files, so "
                    "rename the fields of some of the rows");
    }
    result_.columns = columns;
    ++read_;
  }

  void read_split(const ConfigEntry& field, const std::string& text, bool only_one) {
    if (text == "train") return;
    const bool slice = text.starts_with("train[:") && text.ends_with("]");
    const std::string rows = slice ? text.substr(7, text.size() - 8) : "";
    const bool whole = !rows.empty() && rows.find_first_not_of("0123456789") == std::string::npos;
    if (whole && only_one) {
      result_.max_samples = rows;
    } else {
      refuse(field,
             "expected 'train'; use max_samples: the first rows of each file, and remove it");
    }
  }

  void check_field(const ConfigEntry& field, const std::string& text, MessageNames& names) {
    if (field.key == "message_property_mappings") return read_mappings(field, names);
    if (field.key == "message_field_role") return read_name(field, "role", text, names);
    if (field.key == "message_field_content") return read_name(field, "content", text, names);
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

  // A field of a message: it is read under these names.
  void read_name(const ConfigEntry& field, const std::string& name, const std::string& there,
                 MessageNames& names) {
    if (name == "role" && (there == "role" || there == "from")) {
      names.role = there;
    } else if (name == "content" && (there == "content" || there == "value")) {
      names.content = there;
    } else if (name != there) {
      refuse(field, "expected " + quoted(name) + kRename);
    }
  }

  void read_mappings(const ConfigEntry& field, MessageNames& names) {
    for (const auto& fields : field.maps) {
      for (const ConfigEntry& each : fields) read_name(each, each.key, text_of(each), names);
    }
    if (field.maps.empty()) refuse(field, "expected a map");
  }

  void refuse(const ConfigEntry& field, const std::string& what) {
    const std::string place = file_.empty()
                                  ? where_ + "." + field.key
                                  : file_ + ":" + std::to_string(field.line) + ": " + field.key;
    problems_.add(place + ": " + (field.values.size() == 1 ? quoted(field.values[0]) + ": " : "") +
                  what);
  }

  const std::string& where_;
  const std::string& file_;
  Problems& problems_;
  ForeignDatasets result_;
  std::set<std::string> formats_;
  int64_t read_ = 0;
};

}  // namespace

bool is_dataset_key(const std::string& name) {
  return name == "datasets" || name == "test-datasets" || name == "data" || name == "eval-data";
}

ForeignDatasets translate_datasets(const ConfigEntry& entry, const std::string& where,
                                   const std::string& file, Problems& problems) {
  Reader reader(where, file, problems);
  const bool only_one = entry.maps.size() == 1 && entry.values.empty();
  for (const auto& fields : entry.maps) reader.read(fields, only_one);
  ForeignDatasets result = reader.take();
  result.files.insert(result.files.end(), entry.values.begin(), entry.values.end());
  return result;
}

}  // namespace hearth
