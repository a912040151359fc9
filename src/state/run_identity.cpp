#include "state/run_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error_format.h"
#include "base/planted.h"

namespace hearth {

namespace {

// From and to the JSON of the manifest, by the type of a field.

Json json_of(const std::string& text) { return text; }
Json json_of(const Json& record) { return record; }

Json json_of(const IdentityOptions& options) {
  JsonObject object;
  for (const IdentityOption& option : options) object.emplace_back(option.name, option.value);
  return object;
}

Json json_of(const FileDigests& files) {
  JsonArray list;
  for (const FileDigest& file : files) {
    list.push_back(JsonObject{{"file", file.file}, {"xxh3", file.digest}});
  }
  return list;
}

Json json_of(const IdentityFacts& facts) {
  JsonObject object;
  for (const IdentityFact& fact : facts) {
    JsonArray list(fact.items.begin(), fact.items.end());
    object.emplace_back(fact.name, fact.is_list ? Json(std::move(list)) : list.at(0));
  }
  return object;
}

std::string text_or_empty(const Json* json) {
  return json != nullptr && json->is_string() ? json->as_string() : "";
}

void read(const Json& json, std::optional<std::string>& text) {
  if (json.is_string()) text = json.as_string();
}

void read(const Json& json, std::optional<Json>& record) { record = json; }

void read(const Json& json, std::optional<IdentityOptions>& options) {
  if (!json.is_object()) return;
  options.emplace();
  for (const auto& [name, value] : json.as_object()) {
    options->push_back({name, text_or_empty(&value)});
  }
}

void read(const Json& json, std::optional<FileDigests>& files) {
  if (!json.is_array()) return;
  files.emplace();
  for (const Json& entry : json.as_array()) {
    files->push_back({text_or_empty(entry.find("file")), text_or_empty(entry.find("xxh3"))});
  }
}

std::string item_of(const Json& json) { return json.is_string() ? json.as_string() : json.dump(); }

void read(const Json& json, std::optional<IdentityFacts>& facts) {
  if (!json.is_object()) return;
  facts.emplace();
  for (const auto& [name, value] : json.as_object()) {
    IdentityFact& fact = facts->emplace_back();
    fact.name = name;
    fact.is_list = value.is_array();
    if (!fact.is_list) fact.items = {item_of(value)};
    for (const Json& item : fact.is_list ? value.as_array() : JsonArray{}) {
      fact.items.push_back(item_of(item));
    }
  }
}

template <class Named>
const Named* find_named(const std::optional<std::vector<Named>>& list, std::string_view name) {
  if (!list) return nullptr;
  const auto at =
      std::find_if(list->begin(), list->end(), [&](const Named& n) { return n.name == name; });
  return at != list->end() ? &*at : nullptr;
}

// For people.

/// An option's value, not empty, without the quotes of YAML.
std::string plain(const std::string& yaml) {
  if (yaml[0] != '"') return yaml;
  try {
    return parse_json(yaml, "option").as_string();
  } catch (const std::exception&) {
    return yaml;
  }
}

std::string plain(const IdentityOption* option) {
  const bool unset = option == nullptr || option->value.empty() || option->value == "null";
  return unset ? "unset" : plain(option->value);
}

std::string plain(const IdentityFact& fact) {
  std::string text;
  for (const std::string& item : fact.items) text += (text.empty() ? "" : ", ") + item;
  return text.empty() && fact.is_list ? "none" : text;
}

// An identity has options by name, so it can write them as the user does.
std::string flag(const std::string& option) { return "--" + option; }
std::string allow_change(const std::string& options) {
  return flag("allow-change") + " " + options;
}

std::string file_at(const FileDigests& files, size_t at) {
  return at < files.size() && !files[at].file.empty() ? quoted(files[at].file) : "a file";
}

bool names_gpu(const std::string& devices) { return devices.find("cuda") != std::string::npos; }

/// Whether sums depend on where experts are computed.
bool sums_by_place(const std::optional<IdentityOptions>& options) {
  for (const char* const name : {"partial-sums", "divide-experts"}) {
    const IdentityOption* const option = find_named(options, name);
    if (option != nullptr && option->value == "on") return true;
  }
  return false;
}

/// Whether a run computed without a GPU, by the places that its identity names. False if unknown.
bool ran_without_gpu(const RunIdentity& identity) {
  const IdentityFact* places = find_named(identity.machine.value, "devices");
  return places != nullptr && std::none_of(places->items.begin(), places->items.end(), names_gpu);
}

/// Whether a run with both values of an option gives the same bits. The order of all sums is the
/// same at every place, but a GPU's kernels sum in another. `by_place`: sums depend on where experts
/// are.
bool keeps_bits(const std::string& option, const std::string& both_values, bool without_gpus,
                bool by_place) {
  if (by_place) return false;
  if (option == "devices" || option == "rank-devices") return !names_gpu(both_values);
  if (option == "policy") return without_gpus;
  return option == "topology" || option == "cpu-memory" || option == "gpu-memory";
}

const std::string kGiveBack =
    "restore the files of the first start, or start a new run in another directory; it may train "
    "on "
    "from the result of this one (its model/ as the model, or its adapter/ as the adapter)";

[[noreturn]] void refuse_content(const char* field, const std::string& file,
                                 const std::string& advice) {
  throw input_error("{} changed since the saved state: {} has other content; {}", field, file,
                    advice);
}

/// Applies the rules, one field after the other.
class Comparison {
 public:
  /// `without_gpus`: neither run computes on a GPU.
  Comparison(const std::vector<std::string>& allow_change, const std::string& source,
             bool without_gpus)
      : allowed_(allow_change), source_(source), without_gpus_(without_gpus) {}

  std::vector<IdentityChange> take() { return std::move(changes_); }

  template <class T>
  void operator()(const IdentityField<T>& was, const IdentityField<T>& now) {
    if (now.rule == IdentityRule::recorded || !now.value) return;
    if (was.value) return compare(was, now);
    // The run trained on all rows before it kept some.
    if (now.rule == IdentityRule::held_rows && has_changed(now.option)) warn_of_leak(now.option);
    if (now.gap == IdentityGap::refused || (was.malformed && now.rule == IdentityRule::content)) {
      throw storage_error(source_ + ": lacks " + quoted(now.name) + ", which a resume compares");
    }
  }

 private:
  bool is_allowed(std::string_view option) const {
    return std::find(allowed_.begin(), allowed_.end(), option) != allowed_.end();
  }
  bool has_changed(std::string_view option) const {
    return std::find(changed_.begin(), changed_.end(), option) != changed_.end();
  }
  /// Notes an allowed change; `option` is what --allow-change named.
  void note(const std::string& option, const std::string& text, bool keeps_bits = false) {
    changed_.push_back(option);
    changes_.push_back({text, keeps_bits});
  }

  void compare(const IdentityField<IdentityOptions>& was,
               const IdentityField<IdentityOptions>& now) {
    std::vector<const IdentityOption*> refused;
    for (const IdentityOption& option : *now.value) {
      const IdentityOption* before = find_named(was.value, option.name);
      if (before == nullptr && option.is_default) continue;
      if (before != nullptr && before->value == option.value) continue;
      if (!is_allowed(option.name) && !planted("option-change-ignored")) {
        refused.push_back(&option);
      }
      note(option.name, option.name + ": " + plain(before) + " -> " + plain(&option),
           keeps_bits(option.name, plain(before) + plain(&option), without_gpus_,
                      sums_by_place(was.value) || sums_by_place(now.value)));
    }
    if (!refused.empty()) refuse_options(refused, was.value);
  }

  /// All of them in one line, with the values of the first few.
  [[noreturn]] static void refuse_options(const std::vector<const IdentityOption*>& refused,
                                          const std::optional<IdentityOptions>& was) {
    constexpr size_t kMostValues = 5;
    std::string text, all;
    for (size_t i = 0; i < refused.size(); ++i) {
      const std::string& name = refused[i]->name;
      all += (i == 0 ? "" : ",") + name;
      if (i >= kMostValues) continue;
      text += fmt::format("{}{} was {}{} and is {} now", i == 0 ? "" : "; ", flag(name),
                          quoted(plain(find_named(was, name))),
                          i == 0 ? " when the state was saved" : "", quoted(plain(refused[i])));
    }
    if (refused.size() > kMostValues) {
      text += fmt::format("; and {} more", refused.size() - kMostValues);
    }
    throw usage_error("{}; give the old value{}, or {}", text, refused.size() > 1 ? "s" : "",
                      allow_change(all));
  }

  void compare(const IdentityField<std::string>& was, const IdentityField<std::string>& now) {
    if (*was.value == *now.value) return;
    switch (now.rule) {
      case IdentityRule::fixed: return refuse_other_tensors();
      case IdentityRule::owners: return other_owners(now.option, *was.value, *now.value);
      case IdentityRule::resolved: return resolved(now.option, *was.value, *now.value);
      default: return held_rows(now.option);
    }
  }

  /// Masters and moments are of the tensors that were trained.
  void refuse_other_tensors() const {
    constexpr std::array kMayMatter{"method",       "lora-r",  "expert-r",  "adapter", "model",
                                    "lora-targets", "experts", "trainable", "freeze"};
    std::string names;
    for (const std::string& name : changed_) {
      if (std::find(kMayMatter.begin(), kMayMatter.end(), name) == kMayMatter.end()) continue;
      names += (names.empty() ? "" : ", ") + flag(name);
    }
    if (names.empty()) return;  // the model has other content, which its own field reports
    throw usage_error(
        "{}: cannot change on a resume, not even if allowed, because the saved state holds weights "
        "and moments of other tensors; give the old value, or start a new run in another {} with "
        "the result as {} or {}",
        names, flag("out"), flag("model"), flag("adapter"));
  }

  void resolved(const std::string& option, const std::string& was, const std::string& now) {
    if (!is_allowed(option)) {
      throw usage_error(
          "{0} auto was {1} when the state was saved and would be {2} on this machine; give {0} "
          "{3} "
          "and {4}",
          flag(option), quoted(was), now, was, allow_change(option));
    }
    if (!has_changed(option)) note(option, option + " auto: " + was + " -> " + now);
  }

  void other_owners(const std::string& option, const std::string& was, const std::string& now) {
    if (!is_allowed(option)) {
      throw usage_error(
          "{0}: an expert's owner computes with exact weights, the other ranks with compressed "
          "ones, "
          "so results depend on domains: they were {1} when the state was saved and are {2} now; "
          "give "
          "{0} and {3} of then, or {4}",
          flag(option), was, now, flag("levels"), allow_change(option));
    }
    note(option, "owners of experts: " + was + " -> " + now);
  }

  void held_rows(const std::string& option) {
    if (!is_allowed(option)) {
      throw usage_error(
          "{}: other rows would be kept for evaluation than in the saved state, so the run would "
          "train on rows that it evaluated; give the old {}, {}, {} and {}, or {}",
          flag(option), flag("seed"), flag("data"), flag("seq-len"), flag("overflow"),
          allow_change(option));
    }
    warn_of_leak(option);
  }

  void warn_of_leak(const std::string& option) {
    const std::string leak =
        "other rows are kept for evaluation: the run trains on rows that it evaluates at another "
        "time, so its evaluation losses leak and look better than they are";
    const auto at = std::find(changed_.begin(), changed_.end(), option);
    if (at == changed_.end()) return note(option, option + ": " + leak);
    changes_[static_cast<size_t>(at - changed_.begin())].text += " (" + leak + ")";
  }

  void compare(const IdentityField<FileDigests>& was, const IdentityField<FileDigests>& now) {
    if (!has_changed(now.option)) return require_same_content(was, now, kGiveBack);
    if (now.rule != IdentityRule::kept_files) return;
    for (const FileDigest& file : *now.value) {
      for (const FileDigest& before : *was.value) {
        if (before.file == file.file && before.digest != file.digest) {
          refuse_content(now.name, quoted(file.file), kGiveBack);
        }
      }
    }
  }

  void compare(const IdentityField<IdentityFacts>& was, const IdentityField<IdentityFacts>& now) {
    for (const IdentityFact& fact : *now.value) {
      const IdentityFact* before = find_named(was.value, fact.name);
      if (before == nullptr || (before->items == fact.items && before->is_list == fact.is_list)) {
        continue;
      }
      const std::string change = quoted(plain(*before)) + " -> " + quoted(plain(fact));
      const bool devices = fact.name == "devices";
      auto option = std::find(changed_.begin(), changed_.end(), "devices");
      if (option == changed_.end()) option = std::find(changed_.begin(), changed_.end(), "policy");
      if (devices && option != changed_.end()) {  // one change, told once
        changes_[static_cast<size_t>(option - changed_.begin())].text +=
            " (the model's place: " + change + ")";
      } else {
        note(std::string(now.name) + " " + fact.name,
             std::string(now.name) + " " + fact.name + ": " + change, devices && without_gpus_);
      }
    }
  }

  void compare(const IdentityField<Json>&, const IdentityField<Json>&) {}

  const std::vector<std::string>& allowed_;
  const std::string& source_;
  const bool without_gpus_;
  std::vector<std::string> changed_;     // names
  std::vector<IdentityChange> changes_;  // of these names
};

}  // namespace

std::optional<std::string> RunIdentity::option(std::string_view name) const {
  const IdentityOption* found = find_named(options.value, name);
  return found != nullptr && !found->value.empty() ? std::optional(found->value) : std::nullopt;
}

Json to_json(const RunIdentity& identity) {
  JsonObject members;
  RunIdentity::each(
      [&](const auto& field) {
        if (field.value) members.emplace_back(field.name, json_of(*field.value));
      },
      identity);
  return members;
}

RunIdentity identity_in(const Json& extra) {
  RunIdentity identity;
  RunIdentity::each(
      [&](auto& field) {
        const Json* member = extra.find(field.name);
        if (member != nullptr) read(*member, field.value);
        field.malformed = member != nullptr && !field.value;
      },
      identity);
  return identity;
}

std::vector<IdentityChange> compare(const RunIdentity& saved, const RunIdentity& now,
                                    const std::vector<std::string>& allow_change,
                                    const std::string& source) {
  Comparison comparison(allow_change, source, ran_without_gpu(saved) && ran_without_gpu(now));
  const auto visit = [&](const auto& was, const auto& is) { comparison(was, is); };
  RunIdentity::each(visit, saved, now);
  return comparison.take();
}

void require_same_content(const IdentityField<FileDigests>& saved,
                          const IdentityField<FileDigests>& now, const std::string& advice) {
  const FileDigests was = saved.value.value_or(FileDigests{}),
                    is = now.value.value_or(FileDigests{});
  for (size_t i = 0; i < std::max(was.size(), is.size()); ++i) {
    if (i < was.size() && i < is.size() && was[i] == is[i]) continue;
    if (planted("content-not-compared")) continue;
    if (file_at(was, i) == file_at(is, i)) refuse_content(now.name, file_at(is, i), advice);
    throw input_error("{} changed since the saved state: other files, from {} on; {}", now.name,
                      file_at(i < is.size() ? is : was, i), advice);
  }
}

}  // namespace hearth
