#include "train/progress.h"

#include <string>

#include "base/error.h"
#include "base/json.h"

namespace hearth {

namespace {

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
      throw storage_error(std::string("counters: ") + key + ": expected a count");
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
    throw storage_error("counters: step, updates and skipped steps contradict each other");
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

}  // namespace hearth
