#include "train/launched_ranks.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>

#include "base/error_format.h"
#include "base/file_ops.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/planted.h"
#include "base/setting.h"
#include "comm/checking_world.h"
#include "comm/device_world.h"
#include "comm/mpi_world.h"
#include "data/samples/row_key.h"
#include "setup/gpu_addresses.h"
#include "train/rank_options.h"
#include "train/rank_texts.h"

namespace hearth {

namespace {

/// Seconds without a sign of life, until the option says how many.
constexpr double kStartSilence = 20;

/// The CPUs that this process may use, as the system numbers them.
JsonArray own_cpus() {
  JsonArray cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.emplace_back(int64_t{cpu});
  }
  return cpus;
}

/// What ranks tell each other at the start.
JsonObject machine_record() {
  return {{"cpus", own_cpus()}, {"cpus_online", int64_t{sysconf(_SC_NPROCESSORS_ONLN)}}};
}

/// The GPUs that a rank is to compute with, and whether on one of them alone. Devices that no rank could
/// have are refused later.
struct OwnGpus {
  JsonArray gpus;
  bool one_alone = false;
};

OwnGpus own_gpus(TrainConfig config, int32_t ranks, int32_t rank) {
  config.process_ranks = ranks;
  OwnGpus own;
  try {
    config = with_devices_of_rank(std::move(config), rank);
    for (const GpuAddress& gpu : gpu_addresses(config.devices)) {
      own.gpus.emplace_back(JsonObject{{"name", gpu.name}, {"address", gpu.address}});
    }
    own.one_alone = is_one_gpu(config.devices);
  } catch (const Error&) {
    own = {};
  }
  return own;
}

std::vector<GpuAddress> gpus_in(const Json& record) {
  std::vector<GpuAddress> gpus;
  for (const Json& gpu : record.find("gpus")->as_array()) {
    gpus.push_back({gpu.find("name")->as_string(), gpu.find("address")->as_string()});
  }
  return gpus;
}

/// Of a rank from rank 0. Values that are texts; files are named by the field alone.
struct Difference {
  int32_t rank = 0;
  std::string field, own, first;
};

std::optional<Difference> first_difference(const std::vector<Json>& fields) {
  const JsonObject& first = fields[0].as_object();
  for (size_t rank = 1; rank < fields.size(); ++rank) {
    const JsonObject& own = fields[rank].as_object();
    for (size_t i = 0; i < std::max(first.size(), own.size()); ++i) {
      const bool missing = i >= first.size() || i >= own.size() || first[i].first != own[i].first;
      if (!missing && first[i].second.dump() == own[i].second.dump()) continue;
      Difference found{static_cast<int32_t>(rank), "program", {}, {}};  // another set of fields
      if (!missing) {
        found.field = own[i].first;
        if (own[i].second.is_string() && first[i].second.is_string()) {
          found.own = own[i].second.as_string();
          found.first = first[i].second.as_string();
        }
      }
      return found;
    }
  }
  return std::nullopt;
}

/// "rank 1 (host b) has another lr than rank 0 (host a): 0.001, not 0.0001".
std::string text_of(const Difference& found, const World& world) {
  std::string text = named_rank(found.rank, world.host(found.rank)) + " has another " +
                     found.field + " than " + named_rank(0, world.host(0));
  if (!found.own.empty()) text += ": " + found.own + ", not " + found.first;
  return text;
}

}  // namespace

ExitCode say(const RankEnding& ending) {
  if (!ending.lines.empty()) throw Error(ending.code, ending.lines[0]);
  return ending.code;
}

LaunchedRanks::LaunchedRanks(const Launch& launch) {
  if (const std::string why = why_no_mpi(); !why.empty()) {
    throw usage_error("a launcher started {} processes, but this program has no MPI: {}",
                      launch.ranks, why);
  }
  std::unique_ptr<World> world = make_mpi_world();
  if (world->size() != launch.ranks) {
    throw device_error(
        "the launcher started {} processes, but MPI knows of {}; with srun, --mpi=pmix may help",
        launch.ranks, world->size());
  }
  world_ = make_checking_world(std::move(world));
  world_->watch(kStartSilence);
  team_ = std::make_unique<RankTeam>(*world_);
}

std::optional<RankEnding> LaunchedRanks::compare_start(const TrainConfig& config) {
  if (planted("rank-stops-at-start")) std::raise(SIGSTOP);
  JsonObject fields;
  for (const TrainConfig::Recorded& option : config.recorded) {
    if (!option.of_rank) fields.emplace_back(option.name, option.value);
  }
  fields.emplace_back("program", digest_of_file("/proc/self/exe", [](uint64_t) {}).hex());
  JsonObject record = machine_record();
  record.emplace_back("fields", std::move(fields));
  const OwnGpus own = own_gpus(config, team_->size(), team_->rank());
  record.emplace_back("gpus", own.gpus);
  record.emplace_back("one_gpu_alone", own.one_alone);
  record.emplace_back("no_gpu_messages", own.gpus.empty() ? "" : why_no_gpu_messages());
  return compare(Json(std::move(record)).dump());
}

RankEnding LaunchedRanks::end_before_start(const RankEnding& own) {
  JsonArray lines;
  for (const std::string& line : own.lines) lines.emplace_back(line);
  const JsonObject record{{"code", int64_t{static_cast<int>(own.code)}}, {"lines", lines}};
  try {
    return compare(Json(record).dump()).value_or(own);
  } catch (const PeerError& error) {
    return fail(error);
  }
}

/// Errors before differences: whoever could not read its options has none to compare.
std::optional<RankEnding> LaunchedRanks::compare(const std::string& own) {
  has_started_ = true;
  std::vector<Json> records, fields;
  for (const std::string& text : gather_texts(*team_, own)) {
    records.push_back(parse_json(text, "what a rank starts with"));
  }
  for (size_t rank = 0; rank < records.size(); ++rank) {
    const Json* const code = records[rank].find("code");
    if (code == nullptr) {
      fields.push_back(*records[rank].find("fields"));
      continue;
    }
    RankEnding ending{static_cast<ExitCode>(code->as_int()), {}};
    if (static_cast<int32_t>(rank) != team_->rank()) return ending;
    for (const Json& line : records[rank].find("lines")->as_array()) {
      const std::string who =
          rank == 0 ? "" : named_rank(team_->rank(), world_->host(team_->rank())) + ": ";
      ending.lines.push_back(who + line.as_string());
    }
    return ending;
  }
  count_cpus(records);
  look_at_gpus(records);
  RankEnding ending{ExitCode::usage, {}};
  if (const auto found = first_difference(fields)) {
    if (leads()) ending.lines.push_back(text_of(*found, *world_));
    return ending;
  }
  const std::string shared = shared_gpu_text(records);
  if (shared.empty()) return std::nullopt;
  if (leads()) ending.lines.push_back(shared);
  return ending;
}

/// Empty: each rank has GPUs of its own.
std::string LaunchedRanks::shared_gpu_text(const std::vector<Json>& records) const {
  std::vector<std::string> hosts;
  std::vector<std::vector<GpuAddress>> gpus;
  for (size_t rank = 0; rank < records.size(); ++rank) {
    hosts.push_back(world_->host(static_cast<int32_t>(rank)));
    gpus.push_back(gpus_in(records[rank]));
  }
  const auto found = find_shared_gpu(hosts, gpus);
  if (!found) return {};
  const auto named = [&](int rank) { return named_rank(rank, hosts[static_cast<size_t>(rank)]); };
  return fmt::format(
      "{} has the GPU of {}: {}, at {}; each rank needs a GPU of its own: {} '0=cuda:0;1=cuda:1', "
      "or another CUDA_VISIBLE_DEVICES for each",
      named(found->rank), named(found->other), found->gpu.name, found->gpu.address,
      spelled(Setting::rank_devices));
}

void LaunchedRanks::count_cpus(const std::vector<Json>& records) {
  const auto cpus = [&](int32_t rank) { return records[static_cast<size_t>(rank)].find("cpus"); };
  // Of the ranks below `end`.
  const auto sharing = [&](int32_t of, int32_t end) {
    int count = 0;
    for (int32_t rank = 0; rank < end; ++rank) {
      count += world_->host(rank) == world_->host(of) && cpus(rank)->dump() == cpus(of)->dump();
    }
    return count;
  };
  cpu_share_ = {sharing(team_->rank(), team_->size()), sharing(team_->rank(), team_->rank())};
  for (int32_t rank = 0; rank < team_->size(); ++rank) {
    int64_t here = 0;
    for (int32_t other = 0; other < team_->size(); ++other) {
      here += world_->host(other) == world_->host(rank);
    }
    const auto own = static_cast<int64_t>(cpus(rank)->as_array().size());
    const int64_t all = records[static_cast<size_t>(rank)].find("cpus_online")->as_int();
    if (sharing(rank, team_->size()) > 1 || here < 2 || own * here >= all) continue;
    binding_warning_ = fmt::format(
        "{}: the launcher bound it to {} of {} CPUs, and {} ranks are on the host; with mpirun, "
        "--bind-to none lets the ranks share all",
        named_rank(rank, world_->host(rank)), own, all, here);
    return;
  }
}

/// One GPU each and nothing else, on all ranks, and NCCL.
void LaunchedRanks::look_at_gpus(const std::vector<Json>& records) {
  const auto has_gpu = [](const Json& record) { return record.find("one_gpu_alone")->as_bool(); };
  if (!std::ranges::all_of(records, has_gpu)) return;
  for (size_t rank = 0; rank < records.size(); ++rank) {
    const std::string& why = records[rank].find("no_gpu_messages")->as_string();
    if (why.empty()) continue;
    const auto number = static_cast<int32_t>(rank);
    why_not_direct_ = named_rank(number, world_->host(number)) + ": " + why;
    return;
  }
  direct_ = true;
}

void LaunchedRanks::describe(TrainConfig& config) const {
  config.process_ranks = team_->size();
  config.direct = direct_;
  config.why_not_direct = why_not_direct_;
  config.cpu_share = cpu_share_;
  for (int32_t rank = 0; rank < team_->size(); ++rank) {
    config.rank_hosts.push_back(world_->host(rank));
  }
}

RankEnding LaunchedRanks::fail(const Error& error) {
  const PeerError end = world_->fail(error);
  const PeerFailure& failure = end.failure();
  const bool own = failure.fault == PeerFault::own_error;
  // Who gave no sign may be awake again by now; the others speak of it.
  if (own != (failure.rank == team_->rank())) return {end.code(), {}};
  // What is wrong with the options is wrong with those of all ranks.
  const bool of_all = own && failure.rank == 0 && end.code() == ExitCode::usage;
  return {end.code(), {of_all ? failure.detail : std::string(end.what())}};
}

void require_same_fields(RankTeam& team, const JsonObject& own) {
  std::vector<Json> fields;
  for (const std::string& text : gather_texts(team, Json(own).dump())) {
    fields.push_back(parse_json(text, "what a rank reads"));
  }
  const auto found = first_difference(fields);
  if (!found) return;
  PeerFailure failure;
  failure.host = team.world().host(0);
  failure.code = ExitCode::usage;
  failure.detail = text_of(*found, team.world());
  throw PeerError(std::move(failure));
}

}  // namespace hearth
