#include "train/resume.h"

#include <algorithm>
#include <array>

#include "base/file_ops.h"
#include "base/hash.h"
#include "base/planted.h"
#include "base/version.h"
#include "data/samples/row_key.h"
#include "model/adapters.h"
#include "state/state_adapter.h"
#include "train/spelling.h"

namespace hearth {

namespace {

// The libraries that ops call, by place.
JsonArray libraries_json(const OpenedModel& opened) {
  JsonArray names;
  for (const ComputePlace& place : opened.devices.places) {
    for (const OpLibrary& library : place.ops->libraries()) {
      names.push_back(place.budget.name + ' ' + library.name + ' ' + library.version);
    }
  }
  return names;
}

using Digests = std::vector<std::pair<std::string, Digest>>;

Json digests_json(const Digests& digests) {
  Json list = JsonArray{};
  for (const auto& [file, digest] : digests) {
    Json entry;
    entry["file"] = file;
    entry["xxh3"] = digest.hex();
    list.push_back(std::move(entry));
  }
  return list;
}

const JsonArray& files_of(const Json& identity, const char* key) {
  const Json* files = identity.find(key);
  if (files == nullptr || !files->is_array()) {
    throw storage_error(std::string("saved state: its manifest lacks \"") + key + "\"");
  }
  return files->as_array();
}

/// The file that --chat-template names; none where it names a template of the model or `chatml`.
Digests template_digest(const TrainConfig& config) {
  const std::string& name = config.chat_template;
  if (name.empty() || name == "chatml" || file_info(name).kind == FileKind::none) return {};
  return {{name, digest_of_file(name, [](uint64_t) {})}};
}

/// The name of a file of a list; "a file" where a manifest has none.
std::string name_of_file(const JsonArray& files, size_t at) {
  const Json* name = at < files.size() && files[at].is_object() ? files[at].find("file") : nullptr;
  return name != nullptr && name->is_string() ? quoted(name->as_string()) : "a file";
}

const std::string kGiveBack = "start anew in another --out, or give the files of the first start";

[[noreturn]] void refuse_content(const char* key, const std::string& file,
                                 const std::string& advice) {
  throw input_error(std::string(key) + " changed since the saved state: " + file +
                    " has other content; " + advice);
}

/// The same files with the same content, in the same order.
void compare_content(const Json& saved, const Json& current, const char* key,
                     const std::string& advice = kGiveBack) {
  const JsonArray& was = files_of(saved, key);
  const JsonArray& is = files_of(current, key);
  for (size_t i = 0; i < std::max(was.size(), is.size()); ++i) {
    if (i < was.size() && i < is.size() && was[i].dump() == is[i].dump()) continue;
    if (planted("content-not-compared")) continue;
    if (name_of_file(was, i) == name_of_file(is, i))
      refuse_content(key, name_of_file(is, i), advice);
    throw input_error(std::string(key) + " changed since the saved state: other files, at " +
                      name_of_file(i < is.size() ? is : was, i) + "; " + advice);
  }
}

/// Of files that another value of an option names, those that the old one named, too, have the
/// content they had.
void compare_kept_files(const Json& saved, const Json& current, const char* key) {
  const JsonArray& was = files_of(saved, key);
  const JsonArray& is = files_of(current, key);
  for (size_t i = 0; i < is.size(); ++i) {
    for (size_t j = 0; j < was.size(); ++j) {
      if (name_of_file(was, j) != name_of_file(is, i)) continue;
      if (was[j].dump() != is[i].dump()) refuse_content(key, name_of_file(is, i), kGiveBack);
    }
  }
}

/// Names and shapes of what is trained: those of the masters and moments of a saved state.
Digest trained_tensors(const ParameterTable& table) {
  Hasher hasher;
  for (const Tensor& t : table.tensors()) {
    if (!t.trainable) continue;
    hasher.update_field(t.name);
    hasher.update_u64(static_cast<uint64_t>(t.rows));
    hasher.update_u64(static_cast<uint64_t>(t.cols));
  }
  return hasher.digest();
}

/// A change that was allowed by name and cannot be: masters and moments are of other tensors.
void check_trained_tensors(const Json& saved, const Json& current,
                           const std::vector<std::string>& changed) {
  const Json* was = saved.find("trained");
  if (was == nullptr || was->dump() == current.find("trained")->dump()) return;
  constexpr std::array kMayMatter{"method",       "lora-r",  "expert-r",  "adapter", "model",
                                  "lora-targets", "experts", "trainable", "freeze"};
  std::string names;
  for (const std::string& name : changed) {
    if (std::find(kMayMatter.begin(), kMayMatter.end(), name) == kMayMatter.end()) continue;
    names += (names.empty() ? "--" : ", --") + name;
  }
  if (names.empty()) return;  // the model has other content: said below
  throw usage_error(names +
                    ": decides which tensors are trained, and cannot change on a resume, not even "
                    "with --allow-change: the saved state has masters and moments of others; give "
                    "the old value, or begin in another --out, with what was trained as --model "
                    "or --adapter");
}

/// All of them in one line; the values of the first few.
[[noreturn]] void refuse_options(const std::vector<std::string>& names, const Json& was,
                                 const Json& is) {
  constexpr size_t kMostValues = 5;
  std::string text, all;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    all += (i == 0 ? "" : ",") + name;
    if (i >= kMostValues) continue;
    const Json* old = was.find(name);
    text += (i == 0 ? "--" : "; --") + name + " was " +
            quoted(old != nullptr && old->is_string() ? old->as_string() : "unset") +
            (i == 0 ? " when the state was saved" : "") + " and is " +
            quoted(is.find(name)->as_string()) + " now";
  }
  if (names.size() > kMostValues) {
    text += "; and " + std::to_string(names.size() - kMostValues) + " more";
  }
  throw usage_error(text + "; give the old value" + (names.size() > 1 ? "s" : "") +
                    ", or --allow-change " + all);
}

/// A value of "build" or "machine" for people: of a list its items.
std::string shown(const Json& value) {
  if (value.is_string()) return value.as_string();
  if (!value.is_array()) return value.dump();
  std::string items;
  for (const Json& item : value.as_array()) items += (items.empty() ? "" : ", ") + shown(item);
  return items.empty() ? "none" : items;
}

Progress parse_progress(const std::string& text) {
  Json json;
  try {
    json = parse_json(text, "counters");
  } catch (const Error& error) {
    throw storage_error(error.what());
  }
  const auto number = [&](const char* key) {
    const Json* value = json.find(key);
    if (value == nullptr || !value->is_signed() || value->as_int() < 0) {
      throw storage_error(std::string("counters: ") + key + " is no count");
    }
    return value->as_int();
  };
  Progress progress;
  progress.step = number("step");
  progress.updates = number("updates");
  progress.tokens = number("tokens");
  progress.trained_tokens = number("trained_tokens");
  progress.skipped = number("skipped");
  progress.skipped_in_a_row = number("skipped_in_a_row");
  progress.cursor = {number("epoch"), number("sequence")};
  // Every step updates or is skipped.
  if (progress.updates > progress.step || progress.skipped != progress.step - progress.updates ||
      progress.skipped_in_a_row > progress.skipped) {
    throw storage_error("counters: step, updates and skipped steps do not fit together");
  }
  return progress;
}

}  // namespace

void register_progress(StateRegistry& registry, Progress& progress, Sampler& sampler) {
  registry.add_text(
      "progress",
      [&progress] {
        Json json;
        json["step"] = progress.step;
        json["updates"] = progress.updates;
        json["tokens"] = progress.tokens;
        json["trained_tokens"] = progress.trained_tokens;
        json["skipped"] = progress.skipped;
        json["skipped_in_a_row"] = progress.skipped_in_a_row;
        json["epoch"] = progress.cursor.epoch;
        json["sequence"] = progress.cursor.sequence;
        return json.dump();
      },
      [&progress, &sampler](const std::string& text) {
        progress = parse_progress(text);
        sampler.seek(progress.cursor);
      });
}

Json run_identity(const TrainConfig& config, const PlacedModel& model, const Digests& data,
                  const Digests& eval_data) {
  Json identity;
  Json options = JsonObject{};
  for (const TrainConfig::Recorded& option : config.recorded) {
    if (option.may_change) continue;
    options[option.name] = option.value;
  }
  identity["options"] = std::move(options);
  identity["model"] = digests_json(model.opened->checkpoint->digests());
  if (model.opened->adapter) identity["adapter"] = digests_json(model.opened->adapter->digests());
  identity["trained"] = trained_tensors(model.table).hex();
  if (has_adapters(model.table)) identity["lora"] = adapter_scales(model.table);
  identity["data"] = digests_json(data);
  identity["eval-data"] = digests_json(eval_data);
  identity["chat-template"] = digests_json(template_digest(config));
  identity["compute_dtype"] = name_of(model.settings.compute);
  const BuildInfo& build = build_info();
  identity["build"] = JsonObject{{"version", build.version},   {"revision", build.revision},
                                 {"compiler", build.compiler}, {"flags", build.flags},
                                 {"type", build.build_type},   {"sanitizers", build.sanitizers}};
  identity["machine"] = JsonObject{{"cpu", model.opened->topology.cpu_model},
                                   {"instructions", model.opened->place(kHostPlace).ops->instructions()},
                                   {"devices", devices_json(model)},
                                   {"libraries", libraries_json(*model.opened)}};
  return identity;
}

Json determinism_record(const SavedState* from, const std::vector<std::string>& changes) {
  JsonArray list;
  const Json* before = from != nullptr ? from->extra.find("determinism") : nullptr;
  const Json* kept = before != nullptr ? before->find("changes") : nullptr;
  if (kept != nullptr && kept->is_array()) list = kept->as_array();
  for (const std::string& change : changes) {
    list.push_back(JsonObject{{"after_step", from->step}, {"change", change}});
  }
  return JsonObject{{"level", "replay-exact"}, {"changes", std::move(list)}};
}

void check_model_content(const Json& saved, const Checkpoint& base) {
  Json current;
  current["model"] = digests_json(base.digests());
  compare_content(saved, current, "model", "give --model the checkpoint that was trained");
}

std::vector<std::string> check_identity(const Json& as_saved, const Json& current,
                                        const TrainConfig& config) {
  const Json saved = in_current_spelling(as_saved, current);
  std::vector<std::string> changes;
  const Json* was = saved.find("options");
  if (was == nullptr || !was->is_object()) {
    throw storage_error("saved state: its manifest lacks the options of the run");
  }
  const auto allowed = [&](const std::string& name) {
    return std::find(config.allow_change.begin(), config.allow_change.end(), name) !=
           config.allow_change.end();
  };
  const auto is_default = [&](const std::string& name) {
    return std::any_of(config.recorded.begin(), config.recorded.end(),
                       [&](const auto& o) { return o.name == name && o.is_default; });
  };
  std::vector<std::string> changed, refused;
  const auto change = [&](const std::string& name, const std::string& from, const std::string& to) {
    changed.push_back(name);
    changes.push_back(name + ": " + from + " -> " + to);
  };
  for (const auto& [name, value] : current.find("options")->as_object()) {
    const Json* old = was->find(name);
    const std::string before = old != nullptr && old->is_string() ? old->as_string() : "unset";
    const std::string after = value.as_string();
    if (before == after || (old == nullptr && is_default(name))) continue;
    if (!allowed(name) && !planted("option-change-ignored")) refused.push_back(name);
    change(name, before, after);
  }
  if (!refused.empty()) refuse_options(refused, *was, *current.find("options"));
  check_trained_tensors(saved, current, changed);
  const auto has_changed = [&](const char* option) {
    return std::find(changed.begin(), changed.end(), option) != changed.end();
  };
  const Json* compute = saved.find("compute_dtype");
  const std::string now = current.find("compute_dtype")->as_string();
  if (compute != nullptr && compute->is_string() && compute->as_string() != now) {
    if (!allowed("compute-dtype")) {
      throw usage_error("--compute-dtype auto was " + quoted(compute->as_string()) +
                        " when the state was saved and would be " + now + " on this machine; " +
                        "give --compute-dtype " + compute->as_string() +
                        " and --allow-change compute-dtype");
    }
    if (!has_changed("compute-dtype")) change("compute-dtype auto", compute->as_string(), now);
  }
  // What was kept for evaluation must not be trained on after a resume.
  const Json *held_before = saved.find("val-rows"), *held_now = current.find("val-rows");
  const bool kept_differ = held_before && held_now && held_before->dump() != held_now->dump();
  if (kept_differ && !allowed("val-size")) {
    throw usage_error(
        "--val-size: the rows kept for evaluation would be others than in the saved state, so some "
        "of them would be trained on; give the old --seed, --data, --seq-len and --overflow, or "
        "--allow-change val-size");
  }
  if (kept_differ || (!held_before && held_now && has_changed("val-size"))) {
    changes.push_back(
        "rows kept for evaluation: others than before, so the run evaluates rows that it trains on "
        "at another time; its evaluation losses leak and look better than they are");
  }
  if (!has_changed("chat-template") && saved.find("chat-template") != nullptr) {
    compare_content(saved, current, "chat-template");
  }
  // Another model has other content; of data, files that stay must be what they were.
  if (!has_changed("model")) compare_content(saved, current, "model");
  for (const char* key : {"data", "eval-data"}) {
    if (has_changed(key)) {
      compare_kept_files(saved, current, key);
    } else {
      compare_content(saved, current, key);
    }
  }
  if (!has_changed("adapter") && saved.find("adapter") && current.find("adapter")) {
    compare_content(saved, current, "adapter");
  }
  for (const char* key : {"build", "machine"}) {
    const Json* before = saved.find(key);
    if (before == nullptr || !before->is_object()) continue;
    for (const auto& [name, value] : current.find(key)->as_object()) {
      const Json* old = before->find(name);
      if (old == nullptr || old->dump() == value.dump()) continue;
      const std::string before_and_now = quoted(shown(*old)) + " -> " + quoted(shown(value));
      const auto option = std::find(changed.begin(), changed.end(), name);
      if (name == "devices" && option != changed.end()) {  // one change, told once
        changes[static_cast<size_t>(option - changed.begin())] +=
            " (the model's place: " + before_and_now + ")";
      } else {
        changes.push_back(std::string(key) + " " + name + ": " + before_and_now);
      }
    }
  }
  return changes;
}

}  // namespace hearth
