// A small random model in memory that can run schedules, for whole-model checks in f32 and f64 with
// any op set.
#pragma once

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/random.h"
#include "device/host_device.h"
#include "model/adapters.h"
#include "model/family.h"
#include "model/parameter_memory.h"
#include "runtime/executor.h"
#include "support/all_op_sets.h"
#include "support/single_mode.h"
#include "support/tiny_config.h"

namespace hearth::test {

/// Documents of these lengths, end to end. `seed` determines ids and labels; about a quarter of the
/// labels are not trained.
struct TinyBatch {
  std::vector<int32_t> ids, labels, positions, offsets{0};

  TinyBatch(const std::vector<int32_t>& lengths, int64_t vocabulary, uint64_t seed) {
    const Random random(seed, RandomSite::sample, 7);
    uint64_t draw = 0;
    for (const int32_t n : lengths) {
      for (int32_t i = 0; i < n; ++i) {
        ids.push_back(
            static_cast<int32_t>(random.below(draw++, static_cast<uint64_t>(vocabulary))));
        const auto label =
            static_cast<int32_t>(random.below(draw++, static_cast<uint64_t>(vocabulary)));
        labels.push_back(i + 1 == n || random.below(draw++, 4) == 0 ? -100 : label);
        positions.push_back(i);
      }
      offsets.push_back(static_cast<int32_t>(ids.size()));
    }
  }
  int64_t tokens() const { return static_cast<int64_t>(ids.size()); }
  int64_t trained() const {
    int64_t n = 0;
    for (const int32_t label : labels) n += label >= 0;
    return n;
  }
};

/// The places besides the host, and a function that places blocks.
struct TinyPlaces {
  std::vector<std::shared_ptr<Device>> devices;  // further nodes of the host first
  std::function<void(ParameterTable&)> place_blocks;
  int32_t hosts = 1;       // the host and its further nodes
  int32_t host_lanes = 1;  // as of places_of_rank
  std::shared_ptr<Device> host = make_host_device(uint64_t{1} << 40);
};

class TinyModel {
 public:
  ModelSpec spec;
  ParameterTable table;
  RunSettings settings;
  const OpSet& ops;
  std::vector<PlaceCosts> costs;            // of new executors, by place; may be empty
  LinkClock* clock = &steady_link_clock();  // of new executors
  std::vector<Place> compute;               // PlanInput::compute
  std::vector<Residency*> residencies;      // of new executors, by place; may be empty
  LoadRule loads;                           // of these
  SplitRule* splits = nullptr;              // decides splits; of new inputs and executors

  /// `adapters`: targets that get adapters; their base weights are trained as well.
  TinyModel(const std::string& config, const OpSet& op_set, DType type, uint64_t seed = 1,
            const std::vector<std::string>& adapters = {}, const TinyPlaces& places = {})
      : ops(op_set), devices_{places.host}, hosts_(places.hosts), host_lanes_(places.host_lanes) {
    devices_.insert(devices_.end(), places.devices.begin(), places.devices.end());
    const Json json = parse_json(config, "config.json");
    const Family& family = family_of(json, "config.json");
    spec = family.read_config(json, "config.json");
    table = family.make_table(spec);
    settings.activations = type;
    settings.compute = type == DType::f64 ? Compute::f64 : Compute::f32;
    settings.aux_loss = 0.05;
    if (!adapters.empty()) {
      const auto stored = [&](const std::string& name) { return table.find(name).has_value(); };
      AdapterOptions options;
      options.rank = 2;
      options.expert_rank = 3;
      options.alpha = 1.5;
      options.targets = adapters;
      add_adapters(table, PublishedLayout(table, family, stored, "the tiny model"), options);
    }
    for (Tensor& t : table.tensors()) t.trainable = true;
    policy_ = {true, settings.compute, type};
    if (places.place_blocks) places.place_blocks(table);
    std::vector<PlaceArenas> arenas(devices_.size());
    for (const ParameterArena& a : parameter_arenas(table, policy_)) {
      memory_.push_back(std::make_unique<Arena>(a.name, a.bytes));
      arenas[static_cast<size_t>(a.place)][static_cast<size_t>(a.role)] = memory_.back()->data();
    }
    bind_parameters(table, policy_, arenas);
    fill(seed);
  }

  /// Weights large enough that routing is clear and every part matters; norm weights around one.
  void fill(uint64_t seed) {
    uint64_t tensor = 0;
    for (Tensor& t : table.tensors()) {
      const Random random(seed, RandomSite::init, static_cast<uint32_t>(tensor++));
      const View w = table.view(static_cast<TensorId>(tensor - 1), CopyRole::master);
      for (int64_t i = 0; i < t.size(); ++i) {
        const double x = 0.35 * random.normal(static_cast<uint64_t>(i)) +
                         (t.name.find("norm") != std::string::npos ? 1.0 : 0.0);
        if (w.dtype == DType::f64) {
          w.as<double>()[i] = x;
        } else {
          w.as<float>()[i] = static_cast<float>(x);
        }
      }
    }
  }

  PlanInput input(int64_t tokens, int64_t longest, int64_t micro_batches = 1) const {
    return {spec,          settings,
            table,         std::vector<const OpSet*>(devices_.size(), &ops),
            tokens,        longest,
            micro_batches, places_of_rank(devices_.size(), hosts_, host_lanes_),
            compute,       splits != nullptr};
  }

  /// Makes an executor with its own memory.
  std::unique_ptr<Executor> executor(const Schedule& schedule, int workers = 1) {
    const Schedule* list[] = {&schedule};
    std::vector<Device*> devices;
    std::vector<PlaceParts> places;
    for (const auto& device : devices_) {
      devices.push_back(device.get());
      places.push_back({*device, ops});
      if (places.size() <= costs.size()) places.back().costs = costs[places.size() - 1];
      if (places.size() <= residencies.size()) {
        places.back().residency = residencies[places.size() - 1];
        places.back().loads = loads;
      }
    }
    workspaces_.push_back(
        std::make_unique<Workspace>(make_workspace(devices, workspace_need(list), workers, {})));
    const ExecutorParts parts{places, *workspaces_.back(), spec, settings, table, splits, *clock};
    auto executor = std::make_unique<Executor>(parts, schedule);
    if (schedule.micro_batches > 0) fill_rope(*executor);
    return executor;
  }

  const CopyPolicy& policy() const { return policy_; }
  Device& device(Place place) const { return *devices_[static_cast<size_t>(place)]; }
  Place places() const { return static_cast<Place>(devices_.size()); }

  /// The workspace of the newest executor.
  const Workspace& workspace() const { return *workspaces_.back(); }

  /// A step of this micro-batch alone. Whether it was whole, as Executor::run.
  static bool run_traced(Executor& executor, const TinyBatch& batch, Trace& trace) {
    const BatchShape shape = give(executor, batch, 0);
    executor.scalar(Value::tokens) = static_cast<double>(batch.tokens());
    executor.scalar(Value::trained_tokens) = static_cast<double>(batch.trained());
    executor.scalar(Value::lr) = 1e-3;
    executor.scalar(Value::update_step) = 1;
    RunOptions options;
    options.trace = &trace;
    return executor.run({&shape, 1}, options);
  }

  /// Copies a batch into the inputs of micro-batch m; returns its shape.
  static BatchShape give(const Executor& executor, const TinyBatch& batch, int32_t m) {
    const auto copy = [&](Value value, const std::vector<int32_t>& from) {
      std::memcpy(executor.value(value, -1, m).raw(), from.data(), from.size() * 4);
    };
    copy(Value::ids, batch.ids);
    copy(Value::labels, batch.labels);
    copy(Value::positions, batch.positions);
    copy(Value::query_offsets, batch.offsets);
    copy(Value::key_offsets, batch.offsets);
    executor.scalar(Value::micro_tokens, m) = static_cast<double>(batch.tokens());
    executor.scalar(Value::micro_trained_tokens, m) = static_cast<double>(batch.trained());
    return {batch.tokens(), static_cast<int64_t>(batch.offsets.size()) - 1, 0};
  }

  /// The bytes of all copies of a role.
  std::vector<std::byte> bytes(CopyRole role) const {
    std::vector<std::byte> all;
    for (const Tensor& t : table.tensors()) {
      const ConstView v = t.copies[static_cast<int>(role)].view;
      const auto* data = static_cast<const std::byte*>(v.data);
      all.insert(all.end(), data, data + v.bytes());
    }
    return all;
  }

 private:
  void fill_rope(const Executor& executor) const {
    const View c = executor.value(Value::rope_cosine), s = executor.value(Value::rope_sine);
    for (int64_t p = 0; p < c.rows; ++p) {
      for (int64_t i = 0; i < c.cols; ++i) {
        const double angle =
            static_cast<double>(p) *
            std::pow(spec.rope_theta, -static_cast<double>(i) / static_cast<double>(c.cols));
        if (c.dtype == DType::f64) {
          c.row<double>(p)[i] = std::cos(angle);
          s.row<double>(p)[i] = std::sin(angle);
        } else {
          c.row<float>(p)[i] = static_cast<float>(std::cos(angle));
          s.row<float>(p)[i] = static_cast<float>(std::sin(angle));
        }
      }
    }
  }

  CopyPolicy policy_;
  std::vector<std::shared_ptr<Device>> devices_;  // by place
  int32_t hosts_, host_lanes_;
  std::vector<std::unique_ptr<Arena>> memory_;
  std::vector<std::unique_ptr<Workspace>> workspaces_;
};

/// A shared model in f32 with op set "cpu", for tests that only plan.
inline TinyModel& shared_tiny_model() {
  register_all_op_sets();
  static TinyModel tiny(tiny_config(), find_op_set("cpu"), DType::f32);
  return tiny;
}

}  // namespace hearth::test
