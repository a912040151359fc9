#include "budget/plan_file.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error_format.h"
#include "base/file_ops.h"
#include "base/setting.h"

namespace hearth {

namespace {

constexpr uint64_t kMaxPlanBytes = uint64_t{16} << 20;
constexpr int64_t kMostLayers = 1 << 20;

/// What makes a schedule, in the order in which a difference is reported.
constexpr const char* kFields[] = {
    "model",     "method",       "parallel",      "policy",        "devices",
    "stages",    "workers",      "compute_dtype", "micro_batches", "tokens_per_micro_batch",
    "recompute", "layer_inputs", "group",         "tasks"};
/// Of `roundpipe` alone.
constexpr const char* kStagesBackward = "stages_backward";
/// Every version of the program has written these.
constexpr const char* kAlwaysThere[] = {"fits", "memory", "parallel", "devices", "workers"};

class PlanFile {
 public:
  explicit PlanFile(const std::string& path)
      : path_(path), plan_(parse_json(read_file(path, kMaxPlanBytes), path)) {
    if (!plan_.is_object()) refuse("expected an object");
    for (const char* key : kAlwaysThere) field(key);
    for (const char* key : kFields) {
      if (plan_.find(key) == nullptr) refuse_older(key);
    }
  }

  const Json& field(const char* key) const {
    const Json* value = plan_.find(key);
    if (value == nullptr) refuse(std::string("\"") + key + "\" is missing");
    return *value;
  }
  int64_t count(const char* key, int64_t most) const {
    const Json& value = field(key);
    if (!value.is_signed() || value.as_int() < 1 || value.as_int() > most) {
      refuse(std::string(key) + ": expected a whole number, 1 to " + std::to_string(most) +
             ", found " + quoted(value.dump()));
    }
    return value.as_int();
  }
  /// One of two words: whether it is the first.
  bool is_first(const char* key, const std::string& first, const std::string& second) const {
    const Json& value = field(key);
    if (value.is_string() && value.as_string() == first) return true;
    if (value.is_string() && value.as_string() == second) return false;
    refuse(std::string(key) + ": expected " + first + " or " + second + ", found " +
           quoted(value.dump()));
  }
  /// The last layer of each stage but the last.
  std::vector<int32_t> stage_ends() const {
    std::vector<int32_t> ends;
    for (const auto& [first, last] : layers_of("stages")) {
      if (!ends.empty() && last < ends.back()) refuse_stages("stages");
      ends.push_back(last);
    }
    ends.pop_back();
    return ends;
  }
  /// The first layer of each stage of backward but the last; empty if backward is not cut apart.
  std::vector<int32_t> backward_ends() const {
    std::vector<int32_t> ends;
    if (plan_.find(kStagesBackward) == nullptr) return ends;
    for (const auto& [first, last] : layers_of(kStagesBackward)) {
      if (!ends.empty() && first > ends.back()) refuse_stages(kStagesBackward);
      ends.push_back(first);
    }
    ends.pop_back();
    return ends;
  }
  /// Empty: it was no choice.
  std::string policy() const {
    const Json* const choice = plan_.find("policy_choice");
    const Json* const became =
        choice != nullptr && choice->is_object() ? choice->find("became") : nullptr;
    return became != nullptr && became->is_string() ? became->as_string() : "";
  }
  /// Of zebra: experts that move, by layer with experts. Nothing: the plan has none.
  std::optional<std::vector<int32_t>> expert_shift() const {
    const Json* const layers = plan_.find("expert_shift");
    if (layers == nullptr) return std::nullopt;
    std::vector<int32_t> shift = numbers(*layers, "expert_shift");
    if (std::ranges::count(shift, 0) == std::ssize(shift)) shift.clear();
    return shift;
  }
  /// Of expert domains: a number for each level, the slowest first. Nothing: the plan has none.
  std::optional<std::vector<int32_t>> of_levels(const char* key) const {
    const Json* const sizes = plan_.find(key);
    if (sizes == nullptr) return std::nullopt;
    std::vector<int32_t> numbers = this->numbers(*sizes, key);
    if (numbers.empty() || std::ranges::count(numbers, 0) > 0) {
      refuse(std::string(key) + ": expected a list of numbers above 0");
    }
    return numbers;
  }
  /// Nothing: the plan has all.
  std::optional<int64_t> kept_layers() const {
    const Json* const kept = plan_.find("kept_layers");
    if (kept == nullptr) return std::nullopt;
    if (!kept->is_signed() || kept->as_int() < 0) {
      refuse("kept_layers: expected a whole number from 0");
    }
    return kept->as_int();
  }
  /// Empty: that of Theorem 1.
  ZebraOrder zebra_order() const {
    const Json* const zebra = plan_.find("zebra");
    const Json* const order = zebra && zebra->is_object() ? zebra->find("order") : nullptr;
    if (order == nullptr || order->is_string()) return {};
    return order_of(numbers(*order, "zebra: order"));
  }
  const Json& json() const { return plan_; }

 private:
  std::vector<int32_t> numbers(const Json& list, const std::string& key) const {
    const auto refuse_list = [&] { refuse(key + ": expected a list of whole numbers"); };
    if (!list.is_array()) refuse_list();
    std::vector<int32_t> numbers;
    for (const Json& number : list.as_array()) {
      const bool is_count = number.is_signed() && number.as_int() >= 0;
      if (!is_count || number.as_int() > kMostLayers) refuse_list();
      numbers.push_back(static_cast<int32_t>(number.as_int()));
    }
    return numbers;
  }
  /// The first and last layers of a list of stages, which has one at least.
  std::vector<std::pair<int32_t, int32_t>> layers_of(const char* key) const {
    std::vector<std::pair<int32_t, int32_t>> layers;
    const Json& stages = field(key);
    if (!stages.is_array()) refuse_stages(key);
    for (const Json& stage : stages.as_array()) {
      const Json* const of = stage.is_object() ? stage.find("layers") : nullptr;
      if (!of || !of->is_array() || of->as_array().size() != 2) refuse_stages(key);
      std::array<int32_t, 2> ends{};
      for (size_t i = 0; i < ends.size(); ++i) {
        const Json& end = of->as_array()[i];
        if (!end.is_signed() || end.as_int() < -1 || end.as_int() >= kMostLayers) {
          refuse_stages(key);
        }
        ends[i] = static_cast<int32_t>(end.as_int());
      }
      layers.emplace_back(ends[0], ends[1]);
    }
    if (layers.empty()) refuse_stages(key);
    return layers;
  }
  [[noreturn]] void refuse_stages(const char* key) const {
    refuse(std::string(key) +
           ": expected a list of {\"layers\": [first, last]}, of layers that follow");
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw input_error("{}: {}; this is not a plan of '{}'", path_, what, planning());
  }

  [[noreturn]] void refuse_older(const char* key) const {
    throw input_error("{}: an older version made this plan, without \"{}\"; plan again with '{}'",
                      path_, key, planning());
  }
  static std::string planning() { return "hearth plan " + spelled(Setting::json); }

  std::string path_;
  Json plan_;
};

/// The setting and its file: --plan 'plan.json'.
std::string named(const TrainConfig& config) {
  return spelled(Setting::plan, quoted(config.plan_file));
}

[[noreturn]] void refuse_difference(const TrainConfig& config, const std::string& field,
                                    const std::string& there, const std::string& here) {
  throw usage_error(
      "{}: {}: the plan has {}, this run would have {}; give the options of the plan, "
      "or plan again",
      named(config), field, quoted(there), quoted(here));
}

/// The names of the places of a plan.
std::vector<std::string> names_of_places(const Json& plan) {
  std::vector<std::string> names;
  const Json* memory = plan.find("memory");
  if (!memory || !memory->is_array()) return names;
  for (const Json& place : memory->as_array()) {
    const Json* name = place.is_object() ? place.find("place") : nullptr;
    if (name && name->is_string()) names.push_back(name->as_string());
  }
  return names;
}

/// Refuses a run that has other places than the plan, as it has on another number of NUMA nodes.
void require_places(const TrainConfig& config, const Json& there, const Json& here) {
  const std::vector<std::string> was = names_of_places(there), is = names_of_places(here);
  const auto lacks = [](const std::vector<std::string>& all, const std::string& name) {
    return std::ranges::find(all, name) == all.end();
  };
  for (const std::string& name : was) {
    if (lacks(is, name)) refuse_difference(config, "places", name, "no " + name);
  }
  for (const std::string& name : is) {
    if (lacks(was, name)) refuse_difference(config, "places", "no " + name, name);
  }
}

/// The places of a plan, but for their lines: what each may use, its link and its cost table.
std::vector<std::pair<std::string, Json>> places_of(const Json& plan) {
  std::vector<std::pair<std::string, Json>> places;
  const Json* memory = plan.find("memory");
  if (!memory || !memory->is_array()) return places;
  for (const Json& place : memory->as_array()) {
    const Json* name = place.is_object() ? place.find("place") : nullptr;
    if (!name || !name->is_string()) continue;
    for (const char* key : {"budget_bytes", "links", "costs"}) {
      const Json* value = place.find(key);
      places.emplace_back("memory of '" + name->as_string() + "': " + key,
                          value ? *value : Json(nullptr));
    }
  }
  return places;
}

/// Whether the links of a place have no rates: a virtual device without rates copies as the host does.
bool without_rates(const Json& links) {
  if (!links.is_object()) return true;
  return std::ranges::all_of(std::array{"to_device", "from_device"}, [&](const char* direction) {
    const Json* const link = links.find(direction);
    const Json* const rate = link && link->is_object() ? link->find("bytes_per_s") : nullptr;
    return rate == nullptr || !rate->is_number() || rate->as_double() == 0;
  });
}

/// Whether a key is the memory of the host, which a plan with a topology may have from its file. A run
/// has that of its own machine, and fits there by a plan of its own.
bool is_memory_of_file(const TrainConfig& config, const std::string& key) {
  return !config.topology.empty() && config.cpu_memory == 0 && key.starts_with("memory of 'host") &&
         key.ends_with(": budget_bytes");
}

/// The root complex of each place, which says how copies share bandwidth.
std::vector<std::pair<std::string, Json>> roots_of(const Json& plan) {
  std::vector<std::pair<std::string, Json>> roots;
  const Json* places = plan.find("places");
  if (!places || !places->is_array()) return roots;
  for (const Json& place : places->as_array()) {
    const Json* name = place.is_object() ? place.find("place") : nullptr;
    if (!name || !name->is_string()) continue;
    const Json* root = place.find("root");
    roots.emplace_back("root of '" + name->as_string() + "'", root ? *root : Json(nullptr));
  }
  return roots;
}

/// Bytes of the lines that follow from model, data and options. Those that are measured may differ,
/// and so may schedules: which experts a device holds is counted when a run starts. The allowance
/// may differ, too: at some starts, what opening the model took is a part of it.
std::vector<std::pair<std::string, Json>> fixed_lines(const Json& plan) {
  std::vector<std::pair<std::string, Json>> lines;
  const Json* memory = plan.find("memory");
  if (!memory || !memory->is_array()) return lines;
  for (const Json& place : memory->as_array()) {
    const Json* of_place = place.find("lines");
    if (!of_place || !of_place->is_array()) continue;
    const Json* where = place.find("place");
    const bool on_host = !where || !where->is_string() || where->as_string() == "host";
    const std::string of = on_host ? "" : where->as_string() + ": ";
    for (const Json& line : of_place->as_array()) {
      const Json *name = line.find("name"), *bytes = line.find("bytes"),
                 *basis = line.find("basis");
      if (!name || !name->is_string() || !bytes || !basis || !basis->is_string()) continue;
      const std::string& from = basis->as_string();
      if (from.find("measured") != std::string::npos || from.starts_with("policy")) continue;
      if (name->as_string() == "schedules") continue;
      lines.emplace_back(of + name->as_string(), *bytes);
    }
  }
  return lines;
}

/// Digests of the data's files; null: the plan is of no data, or of an older version.
Json data_of(const Json& plan) {
  const Json* const data = plan.find("data");
  const Json* const digests = data && data->is_object() ? data->find("digests") : nullptr;
  return digests ? *digests : Json(nullptr);
}

}  // namespace

Json read_plan_file(const std::string& path) { return PlanFile(path).json(); }

TrainConfig as_planned(const TrainConfig& options) {
  if (options.plan_file.empty()) return options;
  const PlanFile file(options.plan_file);
  TrainConfig config = options;
  const auto workers = static_cast<int>(file.count("workers", 4096));
  if (config.threads == 0) config.threads = workers;
  const bool bf16 = file.is_first("compute_dtype", "bf16", "f32");
  if (config.compute == ComputeChoice::automatic) {
    config.compute = bf16 ? ComputeChoice::bf16 : ComputeChoice::f32;
  }
  const bool blocks = file.is_first("recompute", "blocks", "none");
  if (config.recompute == Recompute::automatic) {
    config.recompute = blocks ? Recompute::blocks : Recompute::none;
  }
  config.inputs_on_host = file.is_first("layer_inputs", "host", "in_place");
  config.group = file.count("group", 1 << 20);
  config.stage_ends = file.stage_ends();
  config.backward_ends = file.backward_ends();
  config.planned_policy = file.policy();
  if (config.attention_ranks > 0) {
    if (!config.expert_shift) config.expert_shift = file.expert_shift();
    config.zebra_order = file.zebra_order();
  }
  if (config.parallel == "hybrid-ep") {
    if (!config.domains) config.domains = file.of_levels("domains");
    if (!config.kept_layers) config.kept_layers = file.kept_layers();
    if (config.levels.empty()) config.levels = file.of_levels("levels").value_or(config.levels);
  }
  return config;
}

void require_planned(const TrainConfig& config, const Json& plan) {
  if (config.plan_file.empty()) return;
  const PlanFile file(config.plan_file);
  const Json* fits = file.json().find("fits");
  if (fits && fits->is_bool() && !fits->as_bool()) {
    throw usage_error(named(config) + ": fits: the plan does not fit");
  }
  const auto compare = [&](const char* key) {
    const Json *here = plan.find(key), *there = file.json().find(key);
    const std::string is = here ? here->dump() : "nothing", was = there ? there->dump() : "nothing";
    if (is != was) refuse_difference(config, key, was, is);
  };
  for (const char* key : kFields) {
    compare(key);
    if (key == std::string_view("parallel")) {
      compare("expert_shift");
      compare("levels");
      compare("domains");
      compare("kept_layers");
    }
    if (key == std::string_view("devices")) require_places(config, file.json(), plan);
    if (key == std::string_view("stages")) compare(kStagesBackward);
  }
  for (const auto& of : {places_of, roots_of}) {
    const auto here = of(plan);
    for (const auto& [key, was] : of(file.json())) {
      const auto found = std::ranges::find(here, key, &std::pair<std::string, Json>::first);
      if (found == here.end() || was.dump() == found->second.dump()) continue;
      if (key.ends_with(": links") && without_rates(found->second)) continue;
      if (is_memory_of_file(config, key)) continue;
      refuse_difference(config, key, was.dump(), found->second.dump());
    }
  }
  const Json was_data = data_of(file.json()), is_data = data_of(plan);
  if (!was_data.is_null() && !is_data.is_null() && was_data.dump() != is_data.dump()) {
    refuse_difference(config, "data", was_data.dump(), is_data.dump());
  }
  const auto there = fixed_lines(file.json()), here = fixed_lines(plan);
  for (size_t i = 0; i < there.size() || i < here.size(); ++i) {
    const bool in_there = i < there.size(), in_here = i < here.size();
    const std::string& name = in_there ? there[i].first : here[i].first;
    const auto text = [&](const auto& lines, bool has) {
      return has && lines[i].first == name ? lines[i].second.dump() + " bytes" : "no such line";
    };
    const std::string was = text(there, in_there), is = text(here, in_here);
    if (was != is) refuse_difference(config, "memory of '" + name + "'", was, is);
  }
}

}  // namespace hearth
