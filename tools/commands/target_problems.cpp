#include "commands/target_problems.h"

#include <optional>
#include <string_view>

#include "base/setting.h"
#include "checkpoint/description.h"
#include "checkpoint/hub_cache.h"
#include "commands/error_place.h"
#include "model/adapters.h"

namespace hearth {

namespace {

std::optional<ModelDescription> described(const Options& options) {
  try {
    return describe_model(find_model(options.model), options.follow_links);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<std::string> target_problems(const CommandLine& line) {
  const Options& options = line.options;
  std::vector<std::string> problems;
  if (options.method != Method::lora || options.model.empty()) return problems;
  const auto model = described(options);
  if (!model) return problems;
  for (const std::string& target : options.lora_targets) {
    ParameterTable table = model->table;
    AdapterOptions alone;
    alone.targets = {target};
    try {
      add_adapters(table, model->layout, alone);
    } catch (const Error& error) {
      problems.emplace_back(error_at_place(line, error).what());
    }
  }
  return problems;
}

std::vector<std::string> lines_of_error(const CommandLine& line, const Error& error) {
  if (std::string_view(error.what()).starts_with(spelled(Setting::lora_targets))) {
    std::vector<std::string> problems = target_problems(line);
    if (problems.size() > 1) return problems;
  }
  return {error_at_place(line, error).what()};
}

}  // namespace hearth
