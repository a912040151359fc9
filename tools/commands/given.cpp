#include "commands/given.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/file_ops.h"
#include "base/numbers.h"
#include "commands/same_option.h"
#include "foreign/datasets.h"
#include "foreign/keys.h"
#include "foreign/sections.h"
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
  LookUp(Command command, const std::string& dashes, const std::string& file, Trainer trainer,
         Problems& problems)
      : command_(command), dashes_(dashes), file_(file), problems_(problems) {
    place_.trainer = trainer;
  }

  void add(const NamedValue& given) {
    const NamedValue named = with_read_value(given);
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
      if (!recorded) place_.details.push_back(named.where + ": null: not given");
      return;
    }
    if (entry.has_null && (foreign || option)) {
      problems_.add(named.where + ": expected values in the list, found null");
    } else if (asks_for_adapters(entry)) {
      give(named, find_option("method"), {"lora"});
      if (entry.values[0] == "qlora") {
        problems_.add(named.where +
                      ": 'qlora': quantized weights are not supported; use lora, whose adapters "
                      "are the same");
      }
    } else if (option && option->name == "warmup" && is_share(entry)) {
      give(named, find_option("warmup-ratio"), entry.values);
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
      place_.given.push_back({option, named.where, entry.values,
                              option->name != with_hyphens(entry.key), with_hyphens(entry.key)});
    }
  }

  GivenPlace take() {
    if (place_.trainer != Trainer::none) place_.given = joined_keys(std::move(place_.given));
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
  void give(const NamedValue& named, const Option* option, std::vector<std::string> texts) {
    place_.given.push_back(
        {option, named.where, std::move(texts), true, with_hyphens(named.entry.key)});
  }

  /// A flag of another trainer may hold a list or a map as YAML: --chat_template_kwargs '{a: b}'.
  NamedValue with_read_value(const NamedValue& named) {
    const ConfigEntry& entry = named.entry;
    if (dashes_.empty() || !reads_configurations(command_) || entry.values.size() != 1) {
      return named;
    }
    const std::string& text = entry.values[0];
    const bool list = text.starts_with('[') && text.ends_with(']');
    const bool map = text.starts_with('{') && text.ends_with('}');
    const Option* option = find_option(entry.key, command_);
    const bool own = option && option->name == with_hyphens(entry.key) && !map;
    if ((!list && !map) || own) return named;
    try {
      std::vector<ConfigEntry> read = parse_config_yaml("value: " + text, named.where);
      read.at(0).key = entry.key;
      return {read[0], named.where};
    } catch (const Error&) {
      return named;  // a text after all
    }
  }

  /// `adapter: lora` of axolotl's configurations; here the key names a directory.
  bool asks_for_adapters(const ConfigEntry& entry) const {
    const bool kind = entry.values == std::vector<std::string>{"lora"} ||
                      entry.values == std::vector<std::string>{"qlora"};
    return reads_configurations(command_) && entry.key == "adapter" && kind &&
           file_info(entry.values[0]).kind != FileKind::directory;
  }

  /// Newer versions of other trainers take a share of the run as the number of warm-up steps.
  bool is_share(const ConfigEntry& entry) const {
    if (place_.trainer == Trainer::none || entry.values.size() != 1) return false;
    const auto share = parse_number(entry.values[0]);
    return share && *share > 0 && *share < 1;
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
    if (result.option.empty() && result.problem.empty()) {
      auto& lines = result.told ? place_.notes : place_.details;
      lines.push_back(named.where + ": no effect" +
                      (result.note.empty() ? "" : "; " + result.note));
    }
    if (result.option.empty()) return;
    const Option* option = find_option(result.option);
    if (!key.commas && is_list_for_value(named, *option)) return;
    give(named, option, result.texts);
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
    } else {
      place_.details.push_back(named.where + ": no effect" +
                               (key.advice.empty() ? "" : "; " + key.advice));
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
    give(named, find_option("template-args"), texts);
  }

  void add_datasets(const NamedValue& named, const Option& option) {
    const ForeignDatasets datasets = translate_datasets(named.entry, named.where, file_, problems_);
    if (!datasets.files.empty()) give(named, &option, datasets.files);
    const auto give_once = [&](const char* name, const std::vector<std::string>& texts) {
      const bool again = std::any_of(place_.given.begin(), place_.given.end(), [&](const Given& g) {
        return g.option->name == name && g.texts == texts;
      });
      if (!again) give(named, find_option(name), texts);
    };
    if (!datasets.format.empty()) give_once("format", {datasets.format});
    if (!datasets.columns.empty()) give_once("columns", datasets.columns);
    if (!datasets.max_samples.empty()) give_once("max-samples", {datasets.max_samples});
  }

  Command command_;
  const std::string& dashes_;
  const std::string& file_;
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
  for (ConfigEntry& entry : without_sections(read_config_file(path))) {
    const std::string key = entry.key.size() > kMostQuoted ? quoted(entry.key) : entry.key;
    std::string where = path + ":" + std::to_string(entry.line) + ": " + key;
    // Only there is it known to be the rows of one micro-batch.
    if (entry.in_section && entry.key == "batch_size") entry.key = "per_device_train_batch_size";
    named.push_back({std::move(entry), std::move(where)});
  }
  return named;
}

GivenPlace look_up(Command command, const std::vector<NamedValue>& named, const std::string& dashes,
                   const std::string& file, Problems& problems) {
  std::vector<std::string> keys;
  if (!file.empty() && reads_configurations(command)) {
    for (const NamedValue& value : named) keys.push_back(with_hyphens(value.entry.key));
  }
  LookUp look_up(command, dashes, file, trainer_of(keys), problems);
  for (const NamedValue& value : named) look_up.add(value);
  return look_up.take();
}

}  // namespace hearth
