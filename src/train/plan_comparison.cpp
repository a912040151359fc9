#include "train/plan_comparison.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <vector>

#include "base/error_format.h"
#include "base/file_ops.h"
#include "base/size_text.h"
#include "budget/plan_file.h"
#include "modes/planner.h"
#include "train/report_plan.h"

namespace hearth {
namespace {

bool is_mode(const std::string& name) {
  const auto all = planners();
  return std::any_of(all.begin(), all.end(),
                     [&](const Planner* planner) { return planner->name() == name; });
}

NamedPlan plan_in_file(const std::string& name) {
  if (file_info(name).kind == FileKind::none) {
    std::string modes;
    for (const Planner* planner : planners()) modes.append(planner->name()).append(", ");
    throw usage_error("{}: expected {}or a file that 'hearth plan' printed as JSON", quoted(name),
                      modes);
  }
  return {name, read_plan_file(name)};
}

const Json* find(const NamedPlan& plan, const std::string& key) {
  const Json* value = plan.plan.find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<double> number(const NamedPlan& plan, const std::string& key) {
  const Json* value = find(plan, key);
  return value && value->is_number() ? std::optional(value->as_double()) : std::nullopt;
}

template <class... Values>
std::string format(const char* pattern, Values... values) {
  char text[128];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

/// A row: what it is called, and its text in each plan.
struct ComparedRow {
  std::string name;
  std::array<std::string, 2> texts;
  std::string ratio = {};  // of the second to the first
};

class Table {
 public:
  explicit Table(const TwoPlans& plans) : plans_(plans) {}

  std::string text() {
    words("fits", "fits");
    seconds("time of a step", "time_s");
    seconds("bound of a step", "bound_s");
    words("limited by", "limit");
    numbers("tokens/s", "tokens_per_s", "%.4g", 1);
    words("mode", "parallel");
    words("devices", "devices");
    words("bits", "bits");
    words("workers", "workers");
    words("compute type", "compute_dtype");
    words("micro-batches per group", "group");
    words("recompute", "recompute");
    words("inputs of layers", "layer_inputs");
    words("tasks", "tasks");
    for (const std::string& kind : keys_of("phases")) part("phases", kind, "tasks of ");
    for (const std::string& kind : keys_of("kinds")) part("kinds", kind, "");
    for (const std::string& place : places()) memory(place);
    return laid_out();
  }

 private:
  void add(const std::string& name, const std::array<std::string, 2>& texts,
           const std::array<std::optional<double>, 2>& values = {}) {
    ComparedRow row{name, texts};
    if (values[0] && values[1] && *values[0] > 0) {
      row.ratio = format("%+.1f %%", 100 * (*values[1] / *values[0] - 1));
    }
    rows_.push_back(std::move(row));
  }
  void words(const char* name, const std::string& key) {
    std::array<std::string, 2> texts;
    for (size_t i = 0; i < 2; ++i) {
      const Json* value = find(plans_[i], key);
      texts[i] = value == nullptr ? "-" : value->is_string() ? value->as_string() : value->dump();
      if (value != nullptr && value->is_bool()) texts[i] = value->as_bool() ? "yes" : "no";
      if (texts[i].size() > 28) texts[i] = texts[i].substr(0, 25) + "...";
    }
    add(name, texts);
  }
  void numbers(const std::string& name, const std::string& key, const char* pattern, double unit) {
    values(name, {number(plans_[0], key), number(plans_[1], key)}, pattern, unit);
  }
  void values(const std::string& name, const std::array<std::optional<double>, 2>& of,
              const char* pattern, double unit) {
    std::array<std::string, 2> texts{"-", "-"};
    for (size_t i = 0; i < 2; ++i) {
      if (of[i]) texts[i] = format(pattern, *of[i] / unit);
    }
    add(name, texts, of);
  }
  void seconds(const std::string& name, const std::string& key) { numbers(name, key, "%.4g s", 1); }

  /// The keys of an object, of both plans, each once.
  std::vector<std::string> keys_of(const std::string& object) const {
    std::vector<std::string> keys;
    for (const NamedPlan& plan : plans_) {
      const Json* value = find(plan, object);
      if (value == nullptr || !value->is_object()) continue;
      for (const auto& [key, seconds] : value->as_object()) {
        if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
      }
    }
    return keys;
  }
  void part(const std::string& object, const std::string& key, const std::string& prefix) {
    std::array<std::optional<double>, 2> of;
    for (size_t i = 0; i < 2; ++i) {
      const Json* value = find(plans_[i], object);
      value = value ? value->find(key) : nullptr;
      if (value && value->is_number()) of[i] = value->as_double();
    }
    values(prefix + key, of, "%.4g s", 1);
  }

  const Json* place_of(const NamedPlan& plan, const std::string& name) const {
    const Json* memory = find(plan, "memory");
    if (memory == nullptr || !memory->is_array()) return nullptr;
    for (const Json& place : memory->as_array()) {
      const Json* found = place.find("place");
      if (found && found->is_string() && found->as_string() == name) return &place;
    }
    return nullptr;
  }
  std::vector<std::string> places() const {
    std::vector<std::string> names;
    for (const NamedPlan& plan : plans_) {
      const Json* memory = find(plan, "memory");
      if (memory == nullptr || !memory->is_array()) continue;
      for (const Json& place : memory->as_array()) {
        const Json* name = place.find("place");
        if (!name || !name->is_string()) continue;
        if (std::find(names.begin(), names.end(), name->as_string()) == names.end()) {
          names.push_back(name->as_string());
        }
      }
    }
    return names;
  }
  void memory(const std::string& name) {
    std::array<std::optional<double>, 2> of;
    for (size_t i = 0; i < 2; ++i) {
      const Json* place = place_of(plans_[i], name);
      const Json* peak = place ? place->find("peak_bytes") : nullptr;
      if (peak && peak->is_number()) of[i] = peak->as_double();
    }
    std::array<std::string, 2> texts{"-", "-"};
    for (size_t i = 0; i < 2; ++i) {
      if (of[i] && *of[i] >= 0 && *of[i] < 0x1p63)
        texts[i] = size_text(static_cast<uint64_t>(*of[i]));
    }
    add("memory of " + name, texts, of);
  }

  std::string laid_out() const {
    std::string text = format("%-28s", "") + column(plans_[0].name) + column(plans_[1].name) +
                       "   second to first\n";
    for (const ComparedRow& row : rows_) {
      text += format("%-28.28s", row.name.c_str()) + column(row.texts[0]) + column(row.texts[1]) +
              (row.ratio.empty() ? "" : "   " + row.ratio) + "\n";
    }
    return text;
  }
  static std::string column(const std::string& text) {
    const std::string shown = text.size() > 28 ? "..." + text.substr(text.size() - 25) : text;
    return "  " + std::string(28 - shown.size(), ' ') + shown;
  }

  const TwoPlans& plans_;
  std::vector<ComparedRow> rows_;
};

}  // namespace

TwoPlans two_plans(const std::array<std::string, 2>& names, const TrainConfig& config,
                   Reporter& reporter) {
  TwoPlans plans;
  for (size_t i = 0; i < 2; ++i) {  // files first: reading takes less time than planning
    if (!is_mode(names[i])) plans[i] = plan_in_file(names[i]);
  }
  for (size_t i = 0; i < 2; ++i) {
    if (!is_mode(names[i])) continue;
    TrainConfig of_mode = config;
    of_mode.parallel = names[i];
    plans[i] = {names[i], report_plan(of_mode, reporter).json};
  }
  return plans;
}

Json comparison_json(const TwoPlans& plans) {
  const auto a = number(plans[0], "time_s"), b = number(plans[1], "time_s");
  Json faster;
  if (a && b && *a != *b) faster = plans[*a < *b ? 0 : 1].name;
  JsonArray list;
  for (const NamedPlan& plan : plans) {
    list.push_back(JsonObject{{"name", plan.name}, {"plan", plan.plan}});
  }
  return JsonObject{{"plans", std::move(list)}, {"faster", std::move(faster)}};
}

std::string comparison_text(const TwoPlans& plans) { return Table(plans).text(); }

}  // namespace hearth
