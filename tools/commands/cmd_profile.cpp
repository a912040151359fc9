// hearth profile: measures the cost tables of the places of --devices.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error_format.h"
#include "base/file_failure.h"
#include "base/file_ops.h"
#include "base/log.h"
#include "base/paths.h"
#include "base/stop.h"
#include "base/stopwatch.h"
#include "base/system.h"
#include "checkpoint/description.h"
#include "commands/commands.h"
#include "commands/output.h"
#include "commands/profile_report.h"
#include "commands/rank_links.h"
#include "model/family.h"
#include "runtime/bench_model.h"
#include "setup/cost_cache.h"
#include "setup/machine.h"
#include "train/signals.h"

namespace hearth {
namespace {

constexpr double kClusterShare = .25;  // of the time, for links between ranks
constexpr uint64_t kUsualBytes = uint64_t{1} << 30;
constexpr uint64_t kManyExperts = uint64_t{256} << 20;
constexpr uint64_t kOther = uint64_t{64} << 20;  // of --cpu-memory: for what is not measured

/// Shapes where no model is given: those of OLMoE-1B-7B.
constexpr const char* kUsualShapes = R"({"model_type": "olmoe", "vocab_size": 50304,
  "hidden_size": 2048, "intermediate_size": 1024, "num_hidden_layers": 1,
  "num_attention_heads": 16, "num_key_value_heads": 16, "num_experts": 64,
  "num_experts_per_tok": 8, "norm_topk_prob": false, "hidden_act": "silu", "rms_norm_eps": 1e-5,
  "max_position_embeddings": 4096, "rope_theta": 10000.0, "router_aux_loss_coef": 0.01})";

std::shared_ptr<const OpenedModel> open_subject(const Options& options) {
  if (!options.model.empty()) {
    ModelDescription found = describe_model(options.model, options.follow_links);
    return open_shapes(options, std::move(found.spec), std::move(found.table));
  }
  const std::string where = "the usual shapes";
  const Json config = parse_json(kUsualShapes, where);
  const Family& family = family_of(config, where);
  ModelSpec spec = family.read_config(config, where);
  ParameterTable table = family.make_table(spec);
  return open_shapes(options, std::move(spec), std::move(table));
}

/// Where the files go.
struct Outputs {
  std::string directory;  // of a file per place; empty: none
  std::string file;       // of the only place; empty: none
  std::string page;
};

/// What the cache has of a place; none if it is damaged.
std::optional<CostTableFile> cached_table(const std::string& cache, const std::string& place) {
  try {
    return find_table(cache, place);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Writes the table for later runs and plans. That must succeed only if the table is written nowhere
/// else. Entries of other types and numbers of cores stay.
bool keep_in_cache(Console& console, const std::string& cache, const MeasuredTable& one,
                   const CostTableOrigin& origin, bool must) {
  if (cache.empty()) return false;
  try {
    make_directory(cache);
    CostTableFile file{one.table, origin};
    if (const auto older = cached_table(cache, one.place)) {
      file = with_kept_entries(std::move(file), *older);
    }
    write_cost_table(table_path(cache, one.place), file.table, file.origin);
    return true;
  } catch (const Error& error) {
    if (must) throw;
    console.warn(one.place + ": not kept for later runs: " + error.what());
    return false;
  }
}

Outputs outputs_of(const Options& options, const OpenedModel& machine) {
  Outputs out;
  const std::string path = without_trailing_slashes(options.out);
  if (path.empty()) return out;
  const bool directory = file_info(path).kind == FileKind::directory;
  if (directory || !path.ends_with(".json")) {
    out.directory = path;
    out.page = path + "/profile.html";
    return out;
  }
  if (machine.devices.places.size() > 1) {
    throw usage_error(
        "--out {}: {} places have a table each; name a directory, or a place alone in --devices",
        quoted(options.out), machine.devices.places.size());
  }
  out.file = path;
  out.page = path.substr(0, path.size() - 5) + ".html";
  return out;
}

/// Without --cpu-memory enough for a layer of the model, with experts that no cache holds.
uint64_t host_bytes_of(const Options& options, const OpenedModel& machine,
                       const TableRequest& request) {
  if (options.cpu_memory == 0) {
    const uint64_t least =
        least_bench_bytes(request.spec, request.table, {true, request.dtypes.back(), DType::f32});
    return std::min(std::max(kUsualBytes, 2 * (least + kManyExperts)),
                    machine.topology.total_memory / 2);
  }
  const uint64_t taken = resident_bytes() + kOther;
  return options.cpu_memory - std::min(options.cpu_memory, taken);
}

void require_ranks_to_measure(const Options& options, const LaunchedRanks* launched) {
  const bool threads = options.thread_ranks > 1;
  if (threads && launched != nullptr) {
    throw usage_error("--thread-ranks: the processes of the launcher are the ranks; leave it out");
  }
  if (options.cluster && !threads && launched == nullptr) {
    throw usage_error(
        "--cluster: one rank has no links to others; start several with mpirun or srun, or give "
        "--thread-ranks");
  }
  if (threads && !options.cluster) throw usage_error("--thread-ranks: needs --cluster");
  if (!threads && options.rank_links.bytes_per_s > 0) {
    throw usage_error("--rank-links: needs --cluster and --thread-ranks, whose links it slows");
  }
}

/// A line that says what measuring needs also names the options that give it.
std::vector<MeasuredTable> measure(const OpenedModel& machine, const TableRequest& request) {
  try {
    return measure_tables(machine, request);
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage) throw;
    const bool devices = machine.devices.places.size() > 1;
    throw usage_error("{}; raise --cpu-memory{}", error.what(),
                      devices ? ", or mem= of the devices" : "");
  }
}

/// The host's links to other ranks lie in its table.
void add_links(MeasuredTable& host, const std::vector<CostLink>& links) {
  std::vector<CostLink> all = host.table.links();
  all.insert(all.end(), links.begin(), links.end());
  host.table = CostTable(host.table.entries(), std::move(all), host.place);
}

}  // namespace

ExitCode run_profile(const Options& options, LaunchedRanks* launched) {
  const StopSignals signals;
  require_ranks_to_measure(options, launched);
  const Stopwatch watch;
  const LinksOfRanks ranks = measure_links_of_ranks(
      options, launched, options.cluster ? kClusterShare * options.budget_s : 0);
  if (ranks.ended) return *ranks.ended;
  Console console(console_settings(options));
  const auto machine = open_subject(options);
  const Outputs out = outputs_of(options, *machine);
  const std::string cache = cost_cache_directory(machine->topology);
  if (cache.empty() && options.out.empty()) {
    throw usage_error("give --out: neither XDG_CACHE_HOME nor HOME is an absolute path");
  }
  if (!out.directory.empty()) make_directory(out.directory);
  if (!out.file.empty()) make_directory(parent_of(out.file));

  ParameterTable table = machine->base;
  for (Tensor& t : table.tensors()) t.trainable = true;
  RunSettings settings;
  settings.aux_loss = machine->spec.aux_loss;
  TableRequest request{machine->spec, table, settings, {Compute::f32}};
  const auto& places = machine->devices.places;
  if (std::all_of(places.begin(), places.end(), [](const ComputePlace& place) {
        return place.ops->has_in_hardware(Compute::bf16);
      })) {
    request.dtypes.push_back(Compute::bf16);
  }
  request.longest = std::clamp<int64_t>(machine->spec.max_positions, 1, 2048);
  request.seconds = options.budget_s - watch.seconds();
  request.host_bytes = host_bytes_of(options, *machine, request);
  request.progress = [&](const std::string& what, double share) {
    console.show_share("measuring " + what, share);
    return stop_signal() == 0;
  };
  std::vector<MeasuredTable> measured = measure(*machine, request);
  log_lines(machine->said);  // a place that is too small was refused before
  add_links(measured.front(), ranks.links);
  const double seconds = watch.seconds();
  console.show_share("", 1);
  if (stop_signal() != 0) return ExitCode::stopped;
  if (seconds > 1.1 * options.budget_s) {
    console.warn(fmt::format(
        "measured for {:.1f} s: the least table takes longer than --budget; name fewer places, or "
        "give more time",
        seconds));
  }

  std::vector<ProfiledTable> tables;
  for (MeasuredTable& one : measured) {
    CostTableOrigin origin{one.place, machine_json(machine->topology), seconds_now()};
    set_spread(origin, one.spread);
    if (!one.spread) {
      console.warn(one.place + ": too few runs to know how noisy the machine is; raise --budget");
    } else if (one.noisy()) {
      console.warn(one.place +
                   ": the machine is noisy: repeated runs differ by more than 10 %; close other "
                   "programs and measure again");
    }
    std::vector<std::string> files;
    if (!out.directory.empty()) files.push_back(table_path(out.directory, one.place));
    if (!out.file.empty()) files.push_back(out.file);
    for (const std::string& file : files) write_cost_table(file, one.table, origin);
    if (keep_in_cache(console, cache, one, origin, files.empty())) {
      files.push_back(table_path(cache, one.place));
    }
    Json document = cost_table_json(one.table, origin);
    tables.push_back({std::move(one), std::move(document), std::move(files)});
  }
  if (!out.page.empty()) {
    write_file_atomically(out.page, profile_page(tables, machine->topology.cpu_model));
    tables.back().files.push_back(out.page);
  }
  if (options.json) {
    print_json(profile_json(tables, seconds));
  } else {
    print(profile_text(tables, seconds));
  }
  return ExitCode::done;
}

}  // namespace hearth
