// Runs of one model on different sets of devices, to compare their bits.
#pragma once

#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/pool.h"
#include "budget/placement_plan.h"
#include "budget/plan_time.h"
#include "train/least_memory.h"
#include "train/planned_run.h"
#include "train/training_fixture.h"

namespace hearth::test {

inline const std::vector<std::string> kFamilies = {"qwen3_moe", "olmoe", "mixtral", "qwen2_moe",
                                                   "tied"};

/// What is trained, and with which numbers. The bits depend on these.
struct TrainedWith {
  std::string family = "qwen3_moe";
  std::optional<double> lora_dropout = {};  // none: full training
  ComputeChoice compute = ComputeChoice::f32;
  auto operator<=>(const TrainedWith&) const = default;
};

/// Where and how a run computes. The bits do not depend on these.
struct RunsOn {
  int devices = 0;        // virtual ones
  std::string host = {};  // item of the list: "", "host" or "host:1"
  int nodes = 1;          // emulated
  Recompute recompute = Recompute::automatic;
  std::optional<int64_t> group = {};
  std::optional<bool> inputs_on_host = {};  // of layers, between forward and backward
  bool least = false;       // each device has the least memory that the plan accepts
  int hot = 0;              // policy `static`, with memory for so many experts on each device
  std::string policy = {};  // another policy; then `least` is its own
  bool by_times = false;    // policy `auto` with cost tables, so that it may become another one
};

inline std::string text_of(const TrainedWith& with, const RunsOn& on) {
  return with.family +
         (with.lora_dropout ? " lora dropout " + std::to_string(*with.lora_dropout) : " full") +
         (with.compute == ComputeChoice::f32 ? " f32, " : " bf16, ") + std::to_string(on.devices) +
         " devices, host item '" + on.host + "', " + std::to_string(on.nodes) +
         " nodes, recompute " + std::to_string(static_cast<int>(on.recompute)) + ", group " +
         std::to_string(on.group.value_or(0)) + (on.least ? ", least memory" : "") +
         (on.inputs_on_host ? ", inputs on the host" : "") +
         (on.policy.empty() ? "" : ", " + on.policy) +
         (on.by_times ? ", auto by cost tables" : "") +
         (on.hot > 0 ? ", static with " + std::to_string(on.hot) + " experts" : "");
}

inline int cores_here() {
  unbind_thread();  // a run may have left it bound to one core
  return static_cast<int>(detect_topology().cores.size());
}

/// RAII: this machine has so many NUMA nodes.
class EmulatedNodes {
 public:
  explicit EmulatedNodes(int nodes) {
    if (const char* before = std::getenv("HEARTH_NODES")) before_ = before;
    set(nodes > 1 ? std::to_string(nodes) : "");
  }
  ~EmulatedNodes() { set(before_); }
  EmulatedNodes(const EmulatedNodes&) = delete;
  EmulatedNodes& operator=(const EmulatedNodes&) = delete;

 private:
  static void set(const std::string& nodes) {
    nodes.empty() ? unsetenv("HEARTH_NODES") : setenv("HEARTH_NODES", nodes.c_str(), 1);
  }
  std::string before_;
};

/// "virtual:mem=M0,virtual:mem=M1,host"; a device without an element of `memory` has no limit.
inline std::string device_list(const RunsOn& on, const std::vector<uint64_t>& memory = {}) {
  std::string list;
  for (int d = 0; d < on.devices; ++d) {
    list += list.empty() ? "virtual" : ",virtual";
    const auto at = static_cast<size_t>(d);
    if (at < memory.size()) list += ":mem=" + std::to_string(memory[at]);
  }
  if (!on.host.empty()) list += (list.empty() ? "" : ",") + on.host;
  return list.empty() ? "host" : list;
}

/// What a run left.
struct RunBits {
  std::vector<std::tuple<double, double, double>> steps;  // loss, aux loss, gradient norm
  std::string root, result;
  friend bool operator==(const RunBits&, const RunBits&) = default;
};

class SameBitsFixture : public TrainingFixture {
 public:
  SameBitsFixture() {
    for (const std::string& family : kFamilies) {
      Json config = parse_json(R"({"vocab_size": 259, "hidden_size": 16, "num_hidden_layers": 3,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "hidden_act": "silu",
        "num_experts_per_tok": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0, "router_aux_loss_coef": 0.01, "initializer_range": 0.2,
        "torch_dtype": "float32"})",
                               family);
      const auto add = [&](const JsonObject& keys) {
        for (const auto& [key, value] : keys) config[key] = value;
      };
      const Json one = int64_t{1};
      if (family == "olmoe") {
        add({{"num_experts", int64_t{5}},
             {"intermediate_size", int64_t{12}},
             {"clip_qkv", 0.5},
             {"num_key_value_heads", int64_t{2}}});
      } else if (family == "mixtral") {
        add({{"num_local_experts", int64_t{4}}, {"intermediate_size", int64_t{12}}});
      } else {
        add({{"num_experts", int64_t{6}},
             {"moe_intermediate_size", int64_t{12}},
             {"intermediate_size", int64_t{20}}});
      }
      if (family == "qwen2_moe") add({{"shared_expert_intermediate_size", int64_t{24}}});
      if (family == "qwen3_moe") add({{"mlp_only_layers", JsonArray{one}}});
      add({{"tie_word_embeddings", family == "tied"}});
      add({{"model_type", family == "tied" ? "qwen3_moe" : family}});
      write(dir / (family + ".json"), config.dump());
      init_checkpoint(dir / (family + ".json"), dir / family, 5, dir / "tokenizer");
    }
  }

  /// Three steps of three micro-batches, with an evaluation at the end.
  TrainConfig config_of(const TrainedWith& with, const std::string& out) const {
    TrainConfig c = config(out);
    c.model = dir / with.family;
    c.steps = 3;
    c.seq_len = 64;
    c.compute = with.compute;
    c.eval_data = {dir / "rows.jsonl"};
    if (with.lora_dropout) {
      c.method = Method::lora;
      c.lora_rank = 3;
      c.expert_rank = 2;
      c.lora_dropout = *with.lora_dropout;
      c.recorded.push_back({"method", "lora", false});
    }
    return c;
  }

  // A run may leave this thread bound to a core; the next one would see no other.
  ExitCode run(const TrainConfig& config) {
    unbind_thread();
    return TrainingFixture::run(config);
  }
  ExitCode run_until(const TrainConfig& config, int64_t step) {
    unbind_thread();
    return TrainingFixture::run_until(config, step);
  }

  /// The list of a case, as --devices has it. The environment must have the nodes.
  std::string list_of(const TrainConfig& config, const RunsOn& on) const {
    if (on.devices == 0) return device_list(on);
    TrainConfig asked = config;
    if (on.hot > 0) {
      asked.policy.clear();
      asked.devices = device_list(on);
      return device_list(on, memory_with_experts(asked, on.hot));
    }
    if (!on.least) return device_list(on);
    const std::vector<uint64_t> small(static_cast<size_t>(on.devices), 4096);
    asked.devices = device_list(on, small);
    if (has_costs(on)) asked.devices = with_costs(asked.devices);
    return device_list(on, devices_need(asked));
  }

  static bool has_costs(const RunsOn& on) { return on.policy == "aptmoe" || on.by_times; }

  /// The least memory of each virtual device of a list of devices that are all too small.
  std::vector<uint64_t> devices_need(const TrainConfig& config) const {
    return least_device_memory(config);
  }

  double host_call_s = 2e-6, device_row_s = 1e-7, link_bytes_per_s = 5e7;  // of with_costs

  /// The list with cost tables of experts and a link, by which neither place is best for all of them.
  std::string with_costs(const std::string& list) const {
    const auto table = [&](const std::string& name, double call, double row) {
      JsonArray entries;
      for (const char* phase : {"forward", "backward"}) {
        for (const char* type : {"f32", "bf16"}) {
          entries.push_back(JsonObject{{"kind", "experts"},
                                       {"phase", phase},
                                       {"dtype", type},
                                       {"units", JsonArray{int64_t{1}, int64_t{1000}}},
                                       {"seconds", JsonArray{call + row, call + 1000 * row}}});
        }
      }
      const std::string path = dir / (name + "-costs.json");
      write(path, Json(JsonObject{{"format", "hearth-costs-1"},
                                  {"device", name},
                                  {"machine", "made by a test"},
                                  {"made", "by a test"},
                                  {"entries", entries},
                                  {"links", JsonArray{}}})
                      .dump());
      return path;
    };
    const std::string device = table("virtual", 1e-6, device_row_s),
                      host = table("host", host_call_s, 2e-6);
    const std::string link = std::to_string(static_cast<int64_t>(link_bytes_per_s)),
                      rates = "h2d=" + link + "/d2h=" + link + "/costs=";
    std::string with;
    for (size_t at = 0; at < list.size();) {
      const size_t end = std::min(list.find(',', at), list.size());
      const std::string item = list.substr(at, end - at);
      const bool keys = item.starts_with("virtual:") || item.find("host:0") == 0;
      with += (with.empty() ? "" : ",") + item;
      if (item.starts_with("virtual")) {
        with += (keys ? "/" : ":") + rates + device;
      } else {
        with += ":costs=" + host;
      }
      at = end + 1;
    }
    return with;
  }

  /// A device that has a limit may get another cut, which needs a little more than without one.
  static constexpr uint64_t kCutsDiffer = 16384;

  /// For each virtual device what it needs with this many experts of its layers on it.
  std::vector<uint64_t> memory_with_experts(const TrainConfig& config, int count) const {
    unbind_thread();
    RecordingReporter reporter;
    const PlannedRun run(config, open_model(config), reporter);
    const PlacedModel& model = run.model;
    Placement placement = model.placement;
    placement.homes.clear();  // all on the host
    placement.homes = homes_of(model.opened->spec, placement);
    for (const Stage& stage : placement.stages) {
      std::vector<LayerExpert> hot = hottest_first(model.opened->spec, stage, {});
      hot.resize(std::min(hot.size(), static_cast<size_t>(count)));
      for (const auto& [layer, expert] : hot) {
        placement.homes[static_cast<size_t>(layer)][static_cast<size_t>(expert)] = stage.place;
      }
    }
    const PlanRequest request = run.request.scheduled_as(*model.plan.train);
    std::vector<uint64_t> memory;
    for (const PlaceLines& place : plan_with(subject_of(model), placement, request).plan.places) {
      memory.push_back(place.peak + kCutsDiffer);
    }
    return {memory.begin() + run.opened->devices.hosts, memory.end()};
  }

  RunBits run_on(const TrainedWith& with, const RunsOn& on) {
    const EmulatedNodes nodes(on.nodes);
    const std::string out = "run" + std::to_string(runs_++);
    TrainConfig config = config_of(with, out);
    config.recompute = on.recompute;
    config.group = on.group;
    config.inputs_on_host = on.inputs_on_host;
    config.policy = on.policy;
    config.devices = list_of(config, on);
    if (on.hot > 0) config.policy = "static";
    if (has_costs(on)) config.devices = with_costs(config.devices);
    unbind_thread();
    RecordingReporter reporter;
    RunBits bits;
    if (train(config, reporter) != ExitCode::done) return bits;
    for (const StepMetrics& m : reporter.steps) {
      bits.steps.emplace_back(m.loss, m.aux_loss, m.grad_norm);
    }
    bits.root = root(out);
    bits.result = result(out);
    remove_tree(dir / out);
    return bits;
  }

  /// The run on one host, made once for each kind of training.
  const RunBits& on_host(const TrainedWith& with) {
    const auto at = on_host_.find(with);
    if (at != on_host_.end()) return at->second;
    return on_host_[with] = run_on(with, {});
  }

 private:
  int runs_ = 0;
  std::map<TrainedWith, RunBits> on_host_;
};

}  // namespace hearth::test
