#include "setup/run_setup.h"

#include <algorithm>

#include "base/counted.h"
#include "base/glob.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/system.h"
#include "checkpoint/description.h"
#include "data/samples/row_cache.h"
#include "model/adapters.h"
#include "setup/compute_choice.h"
#include "setup/expert_count.h"

namespace hearth {

namespace {

bool is_stored_as_bf16(const ParameterTable& table) {
  return std::any_of(table.tensors().begin(), table.tensors().end(),
                     [](const Tensor& t) { return t.stored == DType::bf16; });
}

bool has_bf16(const RunSetup& setup, const SinglePlacement& placement) {
  return setup.place(placement.dense).ops->has_in_hardware(Compute::bf16) &&
         setup.place(placement.experts).ops->has_in_hardware(Compute::bf16);
}

void warn_of_slow_bf16(const RunSetup& setup) {
  if (has_bf16(setup, setup.placement)) return;
  log_warning(
      "--compute-dtype bf16: this CPU has no bf16 products; operands are rounded and "
      "multiplied in f32, which is slower than f32");
}

RunSetup open_run(const RunConfig& config, bool weights_needed) {
  const uint64_t before = resident_bytes();
  std::optional<Checkpoint> checkpoint;
  ModelSpec spec;
  ParameterTable table;
  PublishedLayout layout;
  std::string types_basis = "the headers of the weight files";
  if (!weights_needed && weights_are_absent(config.model)) {
    ModelDescription model = describe_model(config.model, config.follow_links);
    spec = std::move(model.spec);
    table = std::move(model.table);
    layout = std::move(model.layout);
    types_basis = std::move(model.types_basis);
  } else {
    checkpoint.emplace(config.model, config.follow_links);
    spec = checkpoint->spec();
    table = checkpoint->make_table();
    layout = checkpoint->layout();
  }
  std::optional<AdapterFile> adapter;
  if (!config.adapter.empty()) {
    if (!checkpoint) {
      throw input_error("--adapter " + quoted(config.adapter) +
                        ": the weights of its base are missing");
    }
    adapter.emplace(
        config.adapter, *checkpoint,
        AdapterReadOptions{config.accept_other_base, config.adapter_layout == AdapterLayout::fused,
                           config.follow_links});
  }
  const uint64_t opening = peak_resident_bytes() - std::min(peak_resident_bytes(), before);
  RunSettings settings;
  settings.aux_mode = config.aux_mode;
  Topology topology = detect_topology();
  const auto cores = static_cast<int>(topology.cores.size());
  int workers = config.threads > 0 ? config.threads : cores;
  // Binding helps where every worker has a core of its own; more workers than cores must share.
  std::vector<int> bound = workers <= cores ? topology.worker_cpus(workers) : std::vector<int>{};
  const uint64_t budget = config.cpu_memory > 0 ? config.cpu_memory : topology.total_memory;
  RunDevices devices = open_devices({config.devices, config.gpu_memory, budget, std::move(bound)});
  const SinglePlacement placement = devices.placements.front();
  bound = devices.cores;  // fewer where a virtual device has its own
  if (!bound.empty()) workers = std::min(workers, static_cast<int>(bound.size()));
  RunSetup setup{std::move(checkpoint),
                 std::move(spec),
                 std::move(table),
                 std::move(layout),
                 std::move(types_basis),
                 opening,
                 settings,
                 std::move(topology),
                 workers,
                 std::move(bound),
                 std::move(devices),
                 placement,
                 std::move(adapter),
                 config.compute};
  set_placement(setup, placement);
  if (config.compute == ComputeChoice::bf16) warn_of_slow_bf16(setup);
  return setup;
}

}  // namespace

void set_placement(RunSetup& setup, const SinglePlacement& placement) {
  setup.placement = placement;
  place_blocks(setup.table, placement);
  setup.settings.compute = choose_compute(setup.compute_choice, is_stored_as_bf16(setup.table),
                                          has_bf16(setup, placement));
}

JsonArray devices_json(const RunSetup& setup) {
  JsonArray names{Json(setup.place(setup.placement.dense).name)};
  if (setup.placement.experts != setup.placement.dense) {
    names.push_back(setup.place(setup.placement.experts).name);
  }
  return names;
}

std::string places_text(const RunSetup& setup) {
  const auto text = [&](Place place) {
    if (place != kHostPlace) return setup.place(place).name;
    return "the host with " + counted(setup.workers, "worker");
  };
  const SinglePlacement& at = setup.placement;
  return text(at.dense) + (at.experts == at.dense ? "" : ", experts on " + text(at.experts));
}

void select_trainable(ParameterTable& table, const PublishedLayout& layout, bool lora,
                      const std::vector<std::string>& trainable,
                      const std::vector<std::string>& freeze) {
  const auto mark = [&](const std::vector<std::string>& globs, const char* option, bool value) {
    for (const std::string& glob : globs) {
      bool matched = false;
      for (const PublishedTensor& tensor : layout.tensors()) {
        if (!glob_matches(glob, tensor.name)) continue;
        for (const TensorId id : tensor.parts) table.tensor(id).trainable = value;
        matched = true;
      }
      if (!matched) {
        throw usage_error(std::string(option) + " " + quoted(glob) +
                          ": no tensor of the model has such a name (`hearth inspect` lists them)");
      }
    }
  };
  for (Tensor& t : table.tensors()) t.trainable = !lora && (trainable.empty() || !freeze.empty());
  mark(freeze, "--freeze", false);
  mark(trainable, "--trainable", true);
  if (!lora && trained_parameters(table) == 0) {
    throw usage_error("--freeze: every tensor is frozen, nothing is left to train");
  }
}

const char* name_of(Compute compute) { return compute == Compute::bf16 ? "bf16" : "f32"; }

int64_t all_parameters(const ParameterTable& table) {
  int64_t n = 0;
  for (const Tensor& t : table.tensors()) n += t.size();
  return n;
}

int64_t trained_parameters(const ParameterTable& table) {
  int64_t n = 0;
  for (const Tensor& t : table.tensors()) n += t.trainable ? t.size() : 0;
  return n;
}

RunSetup prepare_run(const RunConfig& config) {
  RunSetup setup = open_run(config, true);
  if (setup.adapter) setup.adapter->add_to(setup.table);
  return setup;
}

namespace {

AdapterOptions adapter_options(const TrainConfig& lora, const ExpertChoice& experts) {
  AdapterOptions options;
  options.rank = lora.lora_rank;
  options.expert_rank = lora.expert_rank.value_or(lora.lora_rank);
  options.alpha = lora.lora_alpha;
  options.rslora = lora.rslora;
  options.targets = lora.lora_targets;
  options.freeze = lora.freeze;
  options.experts = experts;
  return options;
}

void require_adapted_experts(const ParameterTable& table, const std::string& option) {
  const bool any = std::any_of(table.blocks().begin(), table.blocks().end(), [&](const Block& b) {
    return b.kind == BlockKind::adapter && table.block(b.base).kind == BlockKind::expert;
  });
  if (any) return;
  throw usage_error(option + ": no expert gets an adapter, as --lora-targets names none of this " +
                    "model; leave " + option + " out");
}

}  // namespace

void set_trained(RunSetup& setup, const TrainConfig& config, const ExpertChoice& experts) {
  const bool lora = config.method == Method::lora;
  select_trainable(setup.table, setup.layout, lora, config.trainable, config.freeze);
  if (setup.adapter) {
    setup.adapter->add_to(setup.table);
  } else if (lora) {
    add_adapters(setup.table, setup.layout, adapter_options(config, experts));
    if (!experts.empty()) require_adapted_experts(setup.table, "--experts");
    if (config.expert_rank) require_adapted_experts(setup.table, "--expert-r");
  }
  if (lora && setup.checkpoint) require_storable(setup.table, setup.checkpoint->family());
  for (Tensor& t : setup.table.tensors()) t.decayed |= config.decay_all;
  set_placement(setup, setup.placement);
}

namespace {

RunSetup prepare(const TrainConfig& config, bool weights_needed) {
  RunSetup setup = open_run(config, weights_needed);
  const bool lora = config.method == Method::lora;
  if (setup.adapter && !lora) {
    throw usage_error(
        "--adapter: adapters are trained with --method lora; `hearth export` adds "
        "one to a model that is then trained whole");
  }
  if (setup.adapter && !config.freeze.empty()) {
    throw usage_error(
        "--freeze: with --adapter all of its pairs are trained; begin a new adapter for others");
  }
  if (config.experts_top > 0 && (!lora || setup.adapter)) {
    throw usage_error(lora ? "--experts: with --adapter all of its pairs are trained; leave it out"
                           : "--experts chooses experts for adapters; give --method lora");
  }
  const bool chosen = config.experts_top > 0;
  set_trained(setup, config,
              chosen ? placeholder_experts(setup.spec, config.experts_top) : ExpertChoice{});
  const bool router_trains =
      std::any_of(setup.table.tensors().begin(), setup.table.tensors().end(),
                  [](const Tensor& t) { return t.trainable && t.slot == Slot::router; });
  RunSettings& s = setup.settings;
  s.z_loss = config.router_z_loss;
  s.aux_loss = config.router_aux_loss.value_or(router_trains ? setup.spec.aux_loss : 0);
  s.adamw.beta1 = config.beta1;
  s.adamw.beta2 = config.beta2;
  s.adamw.eps = config.eps;
  s.adamw.weight_decay = config.weight_decay;
  s.max_grad_norm = config.max_grad_norm;
  s.lora_dropout = lora ? config.lora_dropout : 0;
  s.seed = config.seed;
  return setup;
}

}  // namespace

RunSetup prepare_training(const TrainConfig& config) { return prepare(config, true); }
RunSetup prepare_planning(const TrainConfig& config) { return prepare(config, false); }

ModelName model_name(const RunConfig& config) {
  return name_of_model(config.model_name.empty() ? config.model : config.model_name, config.model);
}

TemplateOptions template_options(const RunConfig& config) {
  return {config.model, config.chat_template, config.template_date, config.follow_links,
          config.adapter};
}

void warn_of_positions(const RunConfig& config, const ModelSpec& spec, int64_t longest) {
  const std::string made_for = "the model was made for " + std::to_string(spec.max_positions) +
                               " positions (max_position_embeddings), and what lies beyond them is "
                               "computed without training";
  if (longest > spec.max_positions) {
    log_warning("the longest sequence has " + std::to_string(longest) + " tokens: " + made_for +
                "; --seq-len " + std::to_string(spec.max_positions) + " cuts longer rows");
  } else if (config.seq_len > spec.max_positions && config.seq_len != RunConfig().seq_len) {
    log_warning("--seq-len " + std::to_string(config.seq_len) + ": " + made_for);
  }
}

RowOptions row_options(const RunConfig& config) {
  RowOptions options;
  options.model = config.model;
  options.format = config.format;
  options.train_on = config.train_on;
  options.follow_links = config.follow_links;
  options.chat_template = config.chat_template;
  options.template_date = config.template_date;
  options.adapter = config.adapter;
  options.no_special_in_content = config.no_special_in_content;
  options.skip_bad_rows = config.skip_bad_rows;
  options.seq_len = config.seq_len;
  options.overflow = config.overflow;
  return options;
}

RunRowsRequest rows_request(const RunConfig& config, const RunSetup& setup, Reporter& reporter) {
  if (!config.chat_template.empty()) {  // known before a chat is read, or where none is
    const ChatTemplate known(template_options(config));
  }
  RunRowsRequest request;
  request.rows = row_options(config);
  request.rows.vocabulary = setup.spec.vocabulary;
  request.seed = config.seed;
  request.cache = {row_cache_directory(), config.data_cache};
  request.hooks.progress = [&reporter](const std::string& what, uint64_t done, uint64_t total) {
    reporter.progress(what, done, total);
  };
  request.hooks.stop = [] { return stop_signal() != 0; };
  return request;
}

SamplerOptions sampler_options(const RunConfig& config) {
  SamplerOptions options;
  options.seq_len = config.seq_len;
  options.micro_batch = config.micro_batch;
  options.packing = config.packing;
  options.seed = config.seed;
  return options;
}

SamplerOptions sampler_options(const TrainConfig& config) {
  SamplerOptions options = sampler_options(static_cast<const RunConfig&>(config));
  options.grad_accum = config.grad_accum;
  options.shuffle = config.shuffle;
  return options;
}

}  // namespace hearth
