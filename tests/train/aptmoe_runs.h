// Runs with --policy aptmoe, and what their journals say.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "train/same_bits.h"

namespace hearth::test {

/// Full training with few slots, LoRA with slots for everything.
inline TrainConfig aptmoe_run(const SameBitsFixture& f, const std::string& out,
                              const TrainedWith& with) {
  TrainConfig config = f.config_of(with, out);
  config.policy = "aptmoe";
  config.recompute = Recompute::none;
  const RunsOn on{.devices = 1, .host = "host", .least = !with.lora_dropout};
  config.devices = f.with_costs(f.list_of(config, on));
  config.recorded.push_back({"policy", "aptmoe", false});
  return config;
}

/// The events of a name in a journal.
inline std::vector<Json> events_of(const std::string& journal, const std::string& name) {
  std::vector<Json> events;
  const std::string text = read_file(journal);
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    Json event = parse_json(text.substr(at, end - at), journal);
    if (event.find("event")->as_string() == name) events.push_back(std::move(event));
    at = end + 1;
  }
  return events;
}

/// The digest of each step's decisions, with its step.
inline std::vector<std::pair<int64_t, std::string>> digests_in(const std::vector<Json>& events) {
  std::vector<std::pair<int64_t, std::string>> digests;
  for (const Json& event : events) {
    digests.emplace_back(event.find("step")->as_int(), event.find("digest")->as_string());
  }
  return digests;
}

}  // namespace hearth::test
