#include "commands/given.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/file_ops.h"
#include "foreign/datasets.h"
#include "foreign/keys.h"
#include "options/command_table.h"
#include "options/later.h"
#include "options/option_lookup.h"
#include "options/suggest.h"

namespace hearth {
namespace {

constexpr size_t kMostQuoted = 200;  // characters of input; quoted() cuts there

bool reads_configurations(Command command) {
  return command == Command::train || command == Command::plan;
}

/// Names of data sets, which other trainers look up in a registry or on the hub.
void check_data_name(const Given& given, Problems& problems) {
  if (given.option->name != "data" && given.option->name != "eval-data") return;
  for (const std::string& file : given.texts) {
    const size_t name = file.rfind('/') + 1;  // 0 without a slash
    if (file == "-" || file.find('.', name) != std::string::npos) continue;
    if (file_info(file).kind != FileKind::none) continue;
    problems.add(
        given.where + ": " + quoted(file) +
        ": no such file; names of data sets are not looked up, so give the file of its rows "
        "(JSON Lines)");
  }
}

class LookUp {
 public:
  LookUp(Command command, const std::string& dashes, Problems& problems)
      : command_(command), dashes_(dashes), problems_(problems) {}

  void add(const NamedValue& named) {
    const ConfigEntry& entry = named.entry;
    const ForeignKey* foreign =
        reads_configurations(command_) ? find_foreign_key(entry.key) : nullptr;
    const bool exact = foreign && foreign->name == with_hyphens(entry.key);
    const Option* option = find_option(entry.key, command_);
    if (option && !option->taken_by(command_)) option = nullptr;
    if (entry.is_null && (foreign || option || find_later_option(entry.key))) {
      // A recorded configuration has null for own options without a value, which needs no word.
      const bool recorded = option && option->name == with_hyphens(entry.key) &&
                            option->value.get(Options()) == "null";
      if (!recorded) place_.notes.push_back(named.where + ": null: not given");
      return;
    }
    if (entry.has_null && (foreign || option)) {
      problems_.add(named.where + ": expected values in the list, found null");
    } else if (asks_for_adapters(entry)) {
      place_.given.push_back({find_option("method"), named.where, {"lora"}, true});
    } else if (option && !entry.maps.empty() && is_dataset_key(with_hyphens(entry.key))) {
      add_datasets(named, *option);
    } else if (!entry.maps.empty() && is_template_args(option, foreign)) {
      add_template_args(named);
    } else if (foreign && (exact || (!option && !find_later_option(entry.key)))) {
      add_foreign(named, *foreign);
    } else if (!option) {
      // Finding the nearest name takes time, which an unread problem is not worth.
      problems_.add(named.where + ": " +
                    (problems_.many() ? "unknown" : refusal(command_, entry.key, dashes_)));
    } else if (!entry.maps.empty() || entry.nested) {
      problems_.add(named.where +
                    ": expected a value or a list of values, found a map or a list inside a list");
    } else if (!is_list_for_value(named, *option)) {
      place_.given.push_back(
          {option, named.where, entry.values, option->name != with_hyphens(entry.key)});
    }
  }

  GivenPlace take() {
    std::map<const Option*, const Given*> first;
    for (const Given& given : place_.given) {
      if (given.foreign) check_data_name(given, problems_);
      // One place: an option may be spelled in one way.
      const auto [it, fresh] = first.emplace(given.option, &given);
      if (!fresh) {
        problems_.add(it->second->where + " and " + given.where + " are the same option (" +
                      dashes_ + given.option->name + "): give one");
      }
    }
    return std::move(place_);
  }

 private:
  /// `adapter: lora` of axolotl's configurations; here the key names a directory.
  bool asks_for_adapters(const ConfigEntry& entry) const {
    return reads_configurations(command_) && dashes_.empty() && entry.key == "adapter" &&
           entry.values == std::vector<std::string>{"lora"} &&
           file_info("lora").kind != FileKind::directory;
  }

  /// A list, of one value, too, where one value belongs: a problem.
  bool is_list_for_value(const NamedValue& named, const Option& option) {
    const OptionKind kind = option.value.kind;
    if (!named.entry.is_list || kind == OptionKind::list) return false;
    std::string with_commas;
    for (const std::string& value : named.entry.values) {
      with_commas += (with_commas.empty() ? "" : ",") + value;
    }
    const bool has_commas = option.value.placeholder == "LIST";
    problems_.add(named.where + ": expected one value, found a list" +
                  (has_commas ? "; write its items with commas: " + quoted(with_commas) : ""));
    return true;
  }

  void add_foreign(const NamedValue& named, const ForeignKey& key) {
    const ConfigEntry& entry = named.entry;
    if (!entry.maps.empty() || entry.nested) return add_foreign_map(named, key);
    const Translation result = translate(key, entry.values);
    if (!result.problem.empty()) problems_.add(named.where + ": " + result.problem);
    if (!result.note.empty()) place_.notes.push_back(named.where + ": no effect; " + result.note);
    if (result.option.empty()) return;
    const Option* option = find_option(result.option);
    if (!key.commas && is_list_for_value(named, *option)) return;
    place_.given.push_back({option, named.where, result.texts, true});
  }

  void add_foreign_map(const NamedValue& named, const ForeignKey& key) {
    bool harmless = key.other == OtherValue::ignore;
    if (!harmless && !named.entry.nested) {
      harmless = true;
      for (const auto& fields : named.entry.maps) {
        for (const ConfigEntry& field : fields) {
          harmless = harmless && std::find(key.harmless.begin(), key.harmless.end(), field.key) !=
                                     key.harmless.end();
        }
      }
    }
    if (!harmless) {
      problems_.add(named.where + ": " + (key.advice.empty() ? "expected a value" : key.advice));
    } else if (key.other == OtherValue::ignore && !key.advice.empty()) {
      place_.notes.push_back(named.where + ": no effect; " + key.advice);
    }
  }

  static bool is_template_args(const Option* option, const ForeignKey* foreign) {
    return option ? option->name == "template-args" : foreign && foreign->option == "template-args";
  }

  /// A map of variables, each with one value.
  void add_template_args(const NamedValue& named) {
    std::vector<std::string> texts;
    for (const ConfigEntry& field : named.entry.maps[0]) {
      const bool one = field.values.size() == 1 && !field.is_list && field.maps.empty();
      if (named.entry.maps.size() > 1 || !one) {
        return problems_.add(named.where +
                             ": expected a map of variables with one value each, such as "
                             "{enable_thinking: false}");
      }
      texts.push_back(field.key + "=" + field.values[0]);
    }
    place_.given.push_back({find_option("template-args"), named.where, texts, true});
  }

  void add_datasets(const NamedValue& named, const Option& option) {
    const ForeignDatasets datasets = translate_datasets(named.entry, named.where, problems_);
    if (!datasets.files.empty()) {
      place_.given.push_back({&option, named.where, datasets.files, true});
    }
    const bool again = std::any_of(place_.given.begin(), place_.given.end(), [&](const Given& g) {
      return g.option->name == "format" && g.texts[0] == datasets.format;
    });
    if (!datasets.format.empty() && !again) {
      place_.given.push_back({find_option("format"), named.where, {datasets.format}, true});
    }
  }

  Command command_;
  const std::string& dashes_;
  Problems& problems_;
  GivenPlace place_;
};

}  // namespace

std::string suggestion(Command command, std::string_view name, const std::string& dashes) {
  std::vector<std::string> candidates;
  for (const Option& option : option_table()) {
    if (!option.taken_by(command)) continue;
    candidates.push_back(option.name);
    candidates.insert(candidates.end(), option.aliases.begin(), option.aliases.end());
  }
  const std::string nearest = nearest_name(with_hyphens(name), candidates);
  if (nearest.empty()) return "; see 'hearth " + entry_of(command).name + " --help'";
  // As the user spells: with underscores, and by another trainer's name.
  const auto spelled = [&](std::string option) {
    if (name.find('_') != std::string_view::npos)
      std::replace(option.begin(), option.end(), '-', '_');
    return dashes + option;
  };
  const std::string& own = find_option(nearest, command)->name;
  return "; the nearest is " + spelled(nearest) + (nearest == own ? "" : " (" + spelled(own) + ")");
}

std::string refusal(Command command, std::string_view name, const std::string& dashes) {
  const Option* option = find_option(name, command);
  if (find_later_option(name) || (option && option->later.contains(command))) {
    return "not in this version";
  }
  const std::string word = dashes.empty() ? "unknown key" : "unknown option";
  if (option) {
    return word + " for '" + entry_of(command).name + "'" + suggestion(command, name, dashes);
  }
  return word + suggestion(command, name, dashes);
}

std::vector<NamedValue> named_in_file(const std::string& path) {
  std::vector<NamedValue> named;
  for (ConfigEntry& entry : read_config_file(path)) {
    const std::string key = entry.key.size() > kMostQuoted ? quoted(entry.key) : entry.key;
    std::string where = path + ":" + std::to_string(entry.line) + ": " + key;
    named.push_back({std::move(entry), std::move(where)});
  }
  return named;
}

GivenPlace look_up(Command command, const std::vector<NamedValue>& named, const std::string& dashes,
                   Problems& problems) {
  LookUp look_up(command, dashes, problems);
  for (const NamedValue& value : named) look_up.add(value);
  return look_up.take();
}

}  // namespace hearth
