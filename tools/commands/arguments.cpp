#include "commands/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>

#include "base/error.h"
#include "foreign/keys.h"
#include "options/later.h"
#include "options/option_lookup.h"
#include "options/option_table.h"

namespace hearth {
namespace {

enum class Arity { none, one, at_most_one, two };

struct Registered {
  std::string name;  // with hyphens
  CLI::Option* parsed;
};

std::string underscored(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

bool could_be_option(std::string_view name) {
  return std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
}

/// The names that the command knows, each once, as far as a word may mean one: CLI11 compares every
/// name with all before it, and there are hundreds.
class Registry {
 public:
  Registry(CLI::App& app, const std::vector<std::string>& words) : app_(app) {
    for (const std::string& word : words) {
      if (!word.starts_with("--")) continue;
      const std::string name = word.substr(2, word.find('=') - 2);
      said_.emplace(with_hyphens(name), "--" + name);
    }
  }

  void add(const std::string& name, Arity arity) {
    if (!said_.contains(name) || !names_.insert(name).second) return;
    std::string spellings = "--" + name;
    if (underscored(name) != name) spellings += ",--" + underscored(name);
    CLI::Option* option =
        arity == Arity::none ? app_.add_flag(spellings) : app_.add_option(spellings);
    if (arity == Arity::one) option->expected(1)->allow_extra_args(false);
    if (arity == Arity::at_most_one) option->expected(0, 1);
    if (arity == Arity::two) option->expected(2)->allow_extra_args(false);
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    registered_.push_back({name, option});
  }
  void add_options(Command command) {
    for (const Option& option : option_table()) {
      if (option.later.contains(command)) add(option.name, Arity::one);
      if (!option.taken_by(command)) continue;
      // `--packing` alone is on, as the other trainers have it.
      const OptionKind kind = option.value.kind;
      const Arity arity = kind == OptionKind::flag     ? Arity::none
                          : kind == OptionKind::on_off ? Arity::at_most_one
                          : kind == OptionKind::pair   ? Arity::two
                                                       : Arity::one;
      add(option.name, arity);
      for (const std::string& alias : option.aliases) add(alias, arity);
    }
    for (const LaterOption& later : later_options()) {
      add(later.name, later.flag ? Arity::none : Arity::one);
    }
    if (command != Command::train && command != Command::plan) return;
    // The other trainers take `--bf16` and `--bf16 True`. Families of keys (`lora_...`) have any end:
    // what no option is called must not reach CLI11, which splits names at commas.
    for (const auto& [name, written] : said_) {
      if (could_be_option(name) && find_foreign_key(name)) add(name, Arity::at_most_one);
    }
  }
  /// As the user wrote it.
  const std::string& written(const std::string& name) const { return said_.at(name); }
  const std::vector<Registered>& registered() const { return registered_; }

 private:
  CLI::App& app_;
  std::map<std::string, std::string> said_;  // names in the words, and how they are written there
  std::set<std::string> names_;              // registered
  std::vector<Registered> registered_;
};

/// Takes options without their value out. (CLI11 would take the next word for that of `--name=`.)
void refuse_missing_values(const CLI::App& app, std::vector<std::string>& words,
                           Problems& problems) {
  std::vector<std::string> rest;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const size_t equals = word.find('=');
    if (word.starts_with("--") && equals != std::string::npos && equals + 1 == word.size() &&
        equals > 2) {
      problems.add(word.substr(0, equals) + ": expected a value after '=', found nothing");
      continue;
    }
    const CLI::Option* option = word.starts_with("--") ? app.get_option_no_throw(word) : nullptr;
    const bool needs_value = option && option->get_items_expected_min() > 0;
    if (needs_value && i + 1 == words.size()) {
      problems.add(word + ": expected a value after it, found nothing");
      break;
    }
    if (needs_value && words[i + 1].starts_with("--") && app.get_option_no_throw(words[i + 1])) {
      problems.add(word + ": expected a value after it, found " + quoted(words[i + 1]));
      continue;
    }
    rest.push_back(word);
    if (needs_value) rest.push_back(words[++i]);
  }
  words = std::move(rest);
}

}  // namespace

Arguments split_arguments(Command command, std::vector<std::string> words, Problems& problems) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  Registry registry(app, words);
  registry.add_options(command);
  refuse_missing_values(app, words, problems);

  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  try {
    app.parse(words);
  } catch (const CLI::ParseError& e) {
    problems.add(e.what());
  }

  Arguments split;
  for (const Registered& r : registry.registered()) {
    if (r.parsed->empty()) continue;
    std::vector<std::string> texts = r.parsed->results();
    const bool bare = r.parsed->get_items_expected_min() == 0 && texts.size() == 1;
    if (bare && texts[0].empty()) texts[0] = "true";
    split.named.push_back({{r.name, std::move(texts)}, registry.written(r.name)});
  }
  for (const std::string& extra : app.remaining()) {
    if (extra.size() > 1 && extra[0] == '-' && extra != "--") {
      split.unknown.push_back(extra.substr(0, extra.find('=')));
    } else if (extra != "--") {
      split.operands.push_back(extra);
    }
  }
  return split;
}

}  // namespace hearth
