#include "train/resume.h"

#include <algorithm>

namespace hearth {

namespace {

/// File name without its folder: a moved directory is no change.
std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

Json digests_json(const std::vector<std::pair<std::string, Digest>>& digests) {
  Json list = JsonArray{};
  for (const auto& [file, digest] : digests) {
    Json entry;
    entry["file"] = base_name(file);
    entry["xxh3"] = digest.hex();
    list.push_back(std::move(entry));
  }
  return list;
}

void compare_content(const Json& saved, const Json& current, const char* key) {
  const Json* was = saved.find(key);
  const Json* is = current.find(key);
  if (was == nullptr || is == nullptr || !was->is_array()) {
    throw storage_error(std::string("saved state: its manifest lacks \"") + key + "\"");
  }
  const JsonArray& old_files = was->as_array();
  const JsonArray& new_files = is->as_array();
  for (size_t i = 0; i < std::max(old_files.size(), new_files.size()); ++i) {
    if (i < old_files.size() && i < new_files.size() &&
        old_files[i].dump() == new_files[i].dump()) {
      continue;
    }
    const Json& named = i < new_files.size() ? new_files[i] : old_files[i];
    const Json* file = named.find("file");
    const auto has = [&](const JsonArray& files, size_t at) {
      const Json* other = at < files.size() ? files[at].find("file") : nullptr;
      return other != nullptr && file != nullptr && other->dump() == file->dump();
    };
    if (!has(old_files, i) || !has(new_files, i)) {
      throw input_error(
          std::string(key) + " changed since the saved state: other files, at " +
          (file != nullptr && file->is_string() ? quoted(file->as_string()) : "a file") +
          "; start anew in another --out, or give the files of the first start");
    }
    throw input_error(
        std::string(key) + " changed since the saved state: " +
        (file != nullptr && file->is_string() ? quoted(file->as_string()) : "a file") +
        " has other content; start anew in another --out, or restore the file");
  }
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
        const Json json = parse_json(text, "saved state, component progress");
        const auto number = [&](const char* key) {
          const Json* value = json.find(key);
          if (value == nullptr || !value->is_integer() || value->as_int() < 0) {
            throw storage_error(std::string("saved state, component progress: bad \"") + key +
                                "\"");
          }
          return value->as_int();
        };
        progress.step = number("step");
        progress.updates = number("updates");
        progress.tokens = number("tokens");
        progress.trained_tokens = number("trained_tokens");
        progress.skipped = number("skipped");
        progress.skipped_in_a_row = number("skipped_in_a_row");
        progress.cursor = {number("epoch"), number("sequence")};
        sampler.seek(progress.cursor);
      });
}

Json run_identity(const TrainConfig& config, const RunSetup& setup,
                  const std::vector<std::pair<std::string, Digest>>& data) {
  Json identity;
  Json options = JsonObject{};
  for (const TrainConfig::Recorded& option : config.recorded) {
    if (option.may_change) continue;
    options[option.name] = option.value;
  }
  identity["options"] = std::move(options);
  identity["model"] = digests_json(setup.checkpoint->digests());
  identity["data"] = digests_json(data);
  identity["compute_dtype"] = name_of(setup.settings.compute);
  return identity;
}

void check_model_content(const Json& saved, const Checkpoint& base) {
  Json current;
  current["model"] = digests_json(base.digests());
  compare_content(saved, current, "model");
}

std::vector<std::string> check_identity(const Json& saved, const Json& current,
                                        const TrainConfig& config) {
  std::vector<std::string> changes;
  const Json* was = saved.find("options");
  if (was == nullptr || !was->is_object()) {
    throw storage_error("saved state: its manifest lacks the options of the run");
  }
  const auto allowed = [&](const std::string& name) {
    return std::find(config.allow_change.begin(), config.allow_change.end(), name) !=
           config.allow_change.end();
  };
  for (const auto& [name, value] : current.find("options")->as_object()) {
    const Json* old = was->find(name);
    const std::string before = old != nullptr && old->is_string() ? old->as_string() : "unset";
    const std::string after = value.as_string();
    if (before == after || name == "allow-change") continue;
    if (!allowed(name)) {
      throw usage_error("--" + name + " was " + quoted(before) +
                        " when the state was saved and is " + quoted(after) +
                        " now; give the old value, or --allow-change " + name);
    }
    changes.push_back(name + ": " + before + " -> " + after);
  }
  const Json* compute = saved.find("compute_dtype");
  const std::string now = current.find("compute_dtype")->as_string();
  if (compute != nullptr && compute->is_string() && compute->as_string() != now &&
      !allowed("compute-dtype")) {
    throw usage_error("--compute-dtype auto was " + quoted(compute->as_string()) +
                      " when the state was saved and would be " + now + " on this machine");
  }
  if (!allowed("model")) compare_content(saved, current, "model");
  if (!allowed("data") && !allowed("eval-data")) compare_content(saved, current, "data");
  return changes;
}

}  // namespace hearth
