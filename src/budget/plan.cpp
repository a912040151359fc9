#include "budget/plan.h"

#include <algorithm>
#include <numeric>

#include "base/counted.h"
#include "base/program_pages.h"
#include "base/size_text.h"
#include "base/system.h"
#include "budget/peak_line.h"
#include "budget/rank_memory.h"
#include "budget/run_memory.h"
#include "budget/schedule_memory.h"
#include "budget/waiting_inputs.h"
#include "device/device_memory.h"
#include "layers/fetched_experts.h"
#include "model/adapters.h"
#include "plan/decisions/router_foresight.h"
#include "plan/loader/slot_plan.h"
#include "runtime/shared_parameters.h"

namespace hearth {

namespace {

std::string parameter_basis(const PlanSubject& subject, const CopyPolicy& policy, Place place,
                            CopyRole role) {
  int64_t trained = 0, frozen = 0;
  for (const Tensor& t : subject.table.tensors()) {
    if (subject.table.block(t.block).place != place) continue;
    (policy.training && t.trainable ? trained : frozen) += t.size();
  }
  if (role == CopyRole::stored) {
    return "derived: " + counted(frozen, "parameter") + " as stored, by " + subject.types_basis;
  }
  const bool rounded = role == CopyRole::working && policy.compute == Compute::bf16;
  const size_t each = rounded ? size_of(DType::bf16) : size_of(policy.master);
  const char* const which = role != CopyRole::working ? ""
                            : rounded                 ? ", of those that enter products"
                                                      : ", of those of experts";
  return "derived: " + counted(trained, "trained parameter") + ", " + std::to_string(each) +
         " bytes each" + which;
}

}  // namespace

ProcessMemory measure_process(uint64_t data_bytes) {
  map_program();
  release_freed_memory();
  const uint64_t resident = resident_bytes();
  const uint64_t program = resident - std::min(resident, data_bytes);
  return {program, data_bytes, peak_resident_bytes(), true,
          std::min(program, resident_file_bytes())};
}

uint64_t repeatable_program_bytes(const ProcessMemory& process) {
  constexpr size_t kFiles = size_t{1} << 20, kLeastFiles = 18 * kFiles;
  constexpr size_t kOther = size_t{512} << 10;
  const uint64_t files = std::max<uint64_t>(align_up(process.files, kFiles), kLeastFiles);
  return files + align_up(process.program - process.files, kOther);
}

ProcessMemory usual_process(const ParameterTable& table, uint64_t data_bytes) {
  constexpr uint64_t kProgram = uint64_t{24} << 20, kTensor = 1800;
  const auto stored =
      static_cast<uint64_t>(std::ranges::count(table.tensors(), Factor::none, &Tensor::factor));
  return {kProgram + kTensor * stored + table.memory_bytes(), data_bytes, 0, false};
}

namespace {

/// By how much the next process may measure more than this one.
constexpr uint64_t kNextStart = uint64_t{640} << 10;

/// Puts a plan together, line by line.
class PlanMaker {
 public:
  PlanMaker(const PlanSubject& subject, const PlanRequest& request)
      : subject_(subject), request_(request), planner_(*subject.planner) {
    plan_.shards = request.shards;
    plan_.rank_hosts = request.rank_hosts;
    plan_.policy = {request.training, subject.settings.compute, DType::f32,
                    request.shards.wire.owners_decode()};
    for (const ComputePlace& place : subject.places) plan_.places.push_back({place.budget, {}, 0});
  }

  Plan make() {
    add_process();
    add_parameters();
    make_schedules();
    plan_.places = with_schedules(plan_.train ? &*plan_.train : nullptr, &plan_.slots);
    return std::move(plan_);
  }

 private:
  std::vector<MemoryLine>& lines(Place place = kHostPlace) {
    return plan_.places[static_cast<size_t>(place)].lines;
  }
  void add(MemoryUse use, const char* name, uint64_t bytes, const char* basis) {
    lines().push_back({{use}, name, bytes, basis});
  }
  /// Devices whose memory the host does not reach.
  uint64_t far_places() const {
    return static_cast<uint64_t>(
        std::count_if(subject_.places.begin(), subject_.places.end(),
                      [](const ComputePlace& p) { return !p.host_reaches; }));
  }

  void add_process() {
    add(MemoryUse::program, "program and libraries", subject_.process.program,
        subject_.process.measured ? "measured: resident when planned, less the data"
                                  : "policy, not measured: what the program usually takes");
    if (request_.data_bytes > 0) {
      add(MemoryUse::data, "data", request_.data_bytes,
          "measured: index of the rows, order of an epoch, rows held in memory");
    }
    const bool staged = far_places() > 0;
    add(MemoryUse::reading, "buffers of reading files",
        Checkpoint::reading_bytes(subject_.table, subject_.workers, staged),
        staged ? "derived: 8.389 MB per worker, and what to read"
               : "derived: 4.194 MB per worker, and what to read");
    add(MemoryUse::tables, "tables of tensors", table_bytes(subject_, request_.shards),
        "derived: names and places of all tensors, once more in the session of the run");
    if (!staged) return;
    add(MemoryUse::staging, "staging of parameters of devices",
        far_places() * DeviceMemory::kPinnedBytes, "derived: pinned, two pieces per device");
  }

  void add_parameters() {
    for (const ParameterArena& arena : parameter_arenas(subject_.table, plan_.policy)) {
      HEARTH_CHECK(arena.place < std::ssize(plan_.places), "plan: a block at no place of the run");
      lines(arena.place)
          .push_back({parameters_of(arena.role), arena.name, arena.bytes,
                      parameter_basis(subject_, plan_.policy, arena.place, arena.role)});
    }
    if (request_.training) add_saving();
    if (request_.training && foretells_by_routers(subject_.of_model)) {
      const ModelSpec& spec = subject_.spec;
      const RouterPredictorSettings settings = router_settings(spec, subject_.of_model.foresight);
      lines().push_back({{MemoryUse::predictor},
                         "predictor of experts",
                         RouterPredictor::bytes(routed_shape(spec), settings),
                         "derived: weights and two moments as large as the routers, and " +
                             std::to_string(settings.training_rows) + " rows per layer"});
    }
  }

  /// The run reads its weights, then takes steps and saves, then writes its result. So of what these take
  /// for themselves, a line has what it takes beyond the lines before.
  void add_saving() {
    const uint64_t save = saving_bytes(subject_, request_.shards);
    // Lists that grow leave holes from save to save, and a resume lists the tensors of a saved state.
    // Measured: up to a quarter of a save's own.
    const uint64_t bytes = save + save / 4;
    const uint64_t before = bytes_of(plan_.places[kHostPlace], MemoryUse::reading);
    add(MemoryUse::saving, "names and digests of a save", bytes - std::min(bytes, before),
        "derived: master and two moments of trained tensors, a quarter again for holes that saves "
        "leave "
        "and for a resume, beyond the buffers of reading");
  }

  /// The other ranks of the process have ended when the result is written.
  void add_result(PlaceLines& host) const {
    const uint64_t bytes = result_bytes(subject_, request_.shards);
    const uint64_t before = bytes_of(host, MemoryUse::reading) + bytes_of(host, MemoryUse::saving) +
                            bytes_of(host, MemoryUse::ranks);
    host.lines.push_back(
        {{MemoryUse::result},
         "writing and checking the result",
         bytes - std::min(bytes, before),
         (has_adapters(subject_.table) ? "derived: names and digests of the base"
          : subject_.process.measured  ? "measured: what opening the model took"
                                       : "not measured: what opening the model takes") +
             std::string(", beyond what reading and a save take")});
  }

  PlanInput input(int64_t tokens, int64_t micro_batches, bool inputs_on_host = false) const {
    std::vector<const OpSet*> ops;
    for (const ComputePlace& place : subject_.places) ops.push_back(place.ops);
    const auto host_lanes = static_cast<int32_t>(subject_.places[kHostPlace].teams.size());
    return {subject_.spec,
            subject_.settings,
            subject_.table,
            std::move(ops),
            tokens,
            request_.longest,
            micro_batches,
            places_of_rank(subject_.places.size(), subject_.hosts, host_lanes),
            subject_.compute,
            subject_.of_model.decides() && !subject_.compute.empty(),
            request_.training && rotates(),
            request_.shards,
            sampled_rows(subject_.of_model),
            inputs_on_host,
            subject_.compute_backward,
            request_.zebra_order,
            subject_.of_model.divides_experts()};
  }

  /// Whether the host updates what devices compute beside: then its updates run under their next
  /// forward. Or whether weights travel from their owners to other ranks, so that they do under it: a
  /// choice that all ranks make alike, whatever places they have.
  bool rotates() const {
    const ParameterTable& table = subject_.table;
    const RankShards& shards = request_.shards;
    if (shards.ranks > 1) return shards.attention_ranks == 0;
    bool host_updates = false, device_computes = false;
    for (BlockId b = 0; b < std::ssize(table.blocks()); ++b) {
      const Block& block = table.block(b);
      device_computes = device_computes || compute_place(subject_, b) >= subject_.hosts;
      for (TensorId id = block.begin; block.place < subject_.hosts && id < block.end; ++id) {
        host_updates = host_updates || table.tensor(id).trainable;
      }
    }
    return host_updates && device_computes;
  }

  void make_schedules() {
    if (request_.eval_tokens > 0) plan_.eval = planner_.eval(input(request_.eval_tokens, 1));
    if (request_.decode_tokens > 0) {
      plan_.decode = planner_.decode(input(request_.decode_tokens, 1), request_.cache_rows);
    }
    if (!request_.training) return;
    const PlanInput train =
        input(request_.tokens, request_.micro_batches, request_.inputs_on_host.value_or(false));
    if (train.rotates) plan_.drain = planner_.drain(train);
    plan_.train = train_schedule(train, request_.recompute);
    if (!request_.inputs_on_host && inputs_may_wait()) choose_where_inputs_wait();
  }

  TrainSchedule train_schedule(const PlanInput& input, std::optional<bool> recompute) const {
    if (request_.group) {
      const int64_t group = std::min(*request_.group, input.micro_batches_of_shard());
      TrainSchedule kept = planner_.train(input, group, recompute.value_or(false));
      if (recompute || fits(kept)) return kept;
      return planner_.train(input, group, true);
    }
    return planner_.train_within(input, recompute,
                                 [&](const TrainSchedule& train) { return fits(train); });
  }

  /// Whether the host could take some of what a smaller group, or a device, has too little memory for.
  bool inputs_may_wait() const {
    const TrainSchedule& train = *plan_.train;
    return train.recompute && waiting_bytes(subject_, request_) > 0 &&
           (!fits(train) || train.group < request_.micro_batches / request_.shards.count());
  }

  void choose_where_inputs_wait() {
    TrainSchedule on_host =
        train_schedule(input(request_.tokens, request_.micro_batches, true), true);
    const bool here = fits(*plan_.train), there = fits(on_host);
    const bool fewer =
        waiting_spares_bytes(subject_, request_, plan_.policy, *plan_.train, on_host);
    if (here ? there && fewer : there || device_is_short(*plan_.train)) {
      plan_.train = std::move(on_host);
    }
  }

  bool device_is_short(const TrainSchedule& train) const {
    const std::vector<PlaceLines> places = with_schedules(&train);
    return std::any_of(places.begin() + subject_.hosts, places.end(),
                       [](const PlaceLines& place) { return !place.fits(); });
  }

  /// Whether the whole plan fits with this schedule.
  bool fits(const TrainSchedule& train) const {
    const std::vector<PlaceLines> places = with_schedules(&train);
    return std::all_of(places.begin(), places.end(),
                       [](const PlaceLines& place) { return place.fits(); });
  }

  /// The places with the lines of this training schedule, and what follows from all lines.
  /// `slots`, if given: Plan::slots.
  std::vector<PlaceLines> with_schedules(
      const TrainSchedule* train, std::vector<std::vector<SlotClass>>* slots = nullptr) const {
    std::vector<const Schedule*> schedules;
    if (train != nullptr) schedules.push_back(&train->schedule);
    if (plan_.drain) schedules.push_back(&*plan_.drain);
    if (plan_.eval) schedules.push_back(&*plan_.eval);
    if (plan_.decode) schedules.push_back(&*plan_.decode);
    std::vector<PlaceLines> places = plan_.places;
    if (!schedules.empty()) add_schedules(schedules, places);
    if (!subject_.compute.empty()) {
      for (size_t at = 1; at < places.size(); ++at) {
        std::vector<SlotClass> classes = add_slots(schedules, places[at], static_cast<Place>(at));
        if (slots == nullptr) continue;
        slots->resize(places.size());
        (*slots)[at] = std::move(classes);
      }
    }
    if (train != nullptr) add_sums(train->schedule, places);
    add_reached(places);
    add_ranks(places);
    if (request_.training) add_result(places[kHostPlace]);
    add_allowance(places[kHostPlace]);
    for (PlaceLines& place : places) place.peak = sum_of(place.lines);
    set_peak(places[kHostPlace], subject_.process.peak);
    return places;
  }

  void add_schedules(const std::vector<const Schedule*>& schedules,
                     std::vector<PlaceLines>& places) const {
    for (size_t at = 0; at < places.size(); ++at) {
      const auto place = static_cast<Place>(at);
      const Schedule* largest = schedules.front();
      ScratchNeed scratch, sums;
      for (const Schedule* schedule : schedules) {
        if (arena_bytes(*schedule, place) > arena_bytes(*largest, place)) largest = schedule;
        scratch = max_of(scratch, scratch_of(*schedule, place));
        sums = max_of(sums, schedule->sums_scratch);
      }
      if (place != kHostPlace && arena_bytes(*largest, place) == 0) continue;  // nothing runs there
      for (MemoryLine& line : arena_lines(*largest, place, request_.bounds_basis)) {
        places[at].lines.push_back(std::move(line));
      }
      const ComputePlace& of = subject_.places[at];
      const bool has_collectives =
          request_.shards.ranks > 1 && (place == kHostPlace || request_.shards.direct);
      places[at].lines.push_back(
          {{MemoryUse::scratch},
           "scratch of kernels",
           scratch_bytes(scratch, of) + (has_collectives ? collective_scratch_bytes(sums) : 0),
           "derived: declared by kernels" +
               (of.host_reaches ? ", " + counted(workers_of(of), "worker") : "")});
    }
    uint64_t bytes = 0;
    for (const Schedule* schedule : schedules) bytes += schedule_bytes(*schedule);
    if (subject_.of_model.travel != Travel::never) {
      const uint64_t devices = places.size() - static_cast<size_t>(subject_.hosts);
      bytes += devices * schedules.size() * travel_table_bytes(subject_.table);
    }
    places[kHostPlace].lines.push_back(
        {{MemoryUse::schedules}, "schedules", bytes, "derived: tasks and their buffers"});
  }

  /// Slots take what the device has left, at least what its largest task needs.
  std::vector<SlotClass> add_slots(const std::vector<const Schedule*>& schedules, PlaceLines& place,
                                   Place at) const {
    const auto sizes = slot_sizes(subject_.table, plan_.policy, schedules, at);
    if (sizes.empty()) return {};
    const uint64_t others = sum_of(place.lines), budget = place.budget.bytes;
    const uint64_t left = budget - std::min(budget, others);
    std::vector<SlotClass> classes =
        slot_classes(sizes, std::clamp(left, least_slot_bytes(sizes), most_slot_bytes(sizes)));
    uint64_t bytes = 0;
    for (const SlotClass& of : classes) bytes += of.bytes * static_cast<uint64_t>(of.slots);
    place.lines.push_back({{MemoryUse::slots},
                           "copies of weights and gradients of the host",
                           bytes,
                           "derived: what is left, from what one task needs to everything"});
    return classes;
  }

  /// What sums over logical shards and ranks take beside the gradients.
  void add_sums(const Schedule& train, std::vector<PlaceLines>& places) const {
    const RankShards& shards = request_.shards;
    const auto aside = static_cast<uint64_t>(gradients_aside(shards));
    for (const ParameterArena& arena : parameter_arenas(subject_.table, plan_.policy)) {
      if (arena.role != CopyRole::gradient || aside == 0) continue;
      places[static_cast<size_t>(arena.place)].lines.push_back(
          {{MemoryUse::sums},
           "gradients of earlier logical shards",
           aside * arena.bytes,
           "derived: " + counted(static_cast<int64_t>(aside), "partial sum") + " of " +
               counted(shards.count(), "shard") + ", each as large as the gradients"});
    }
    const std::vector<int32_t> guests = guest_gradients(shards);
    const int32_t times = std::accumulate(guests.begin(), guests.end(), 0);
    if (times > 0) {
      const uint64_t bytes = guest_gradient_bytes(subject_.table, shards);
      const Place at = guest_place(subject_.table, shards);
      places[static_cast<size_t>(at)].lines.push_back(
          {{MemoryUse::sums},
           "gradients of other ranks' rows",
           static_cast<uint64_t>(times) * bytes,
           "derived: those of this rank's experts, " + counted(times, "time") + " more"});
    }
    const StagingNeed staging = staging_bytes(train, subject_.table, shards, subject_.hosts);
    const auto add = [&](Place at, uint64_t bytes) {
      if (bytes == 0) return;
      places[static_cast<size_t>(at)].lines.push_back(
          {{MemoryUse::sums},
           "gradients from other ranks",
           bytes,
           "derived: of the layer with the most of them, and what goes between devices and other "
           "ranks"});
    };
    add(kHostPlace, staging.host);
    add(subject_.hosts, staging.device);
  }

  /// Ranks that are threads share the process. As if all had the same devices.
  void add_ranks(std::vector<PlaceLines>& places) const {
    const auto others = static_cast<uint64_t>(request_.shards.ranks - 1);
    if (others == 0 || !request_.shards.are_threads) return;
    PlaceLines& host = places[kHostPlace];
    uint64_t own = 0;
    for (const MemoryLine& line : host.lines) own += is_of_rank(line.id.use) ? line.bytes : 0;
    const auto of_rank = [&](int32_t rank) {
      ParameterTable table = subject_.table;
      RankShards shards = request_.shards;
      shards.rank = rank;
      own_blocks(table, shards);
      return rank_bytes(table, shards);
    };
    uint64_t bytes = others * (own - of_rank(0) + subject_.table.memory_bytes());
    for (int32_t rank = 1; rank < request_.shards.ranks; ++rank) bytes += of_rank(rank);
    host.lines.push_back(
        {{MemoryUse::ranks},
         "the other ranks",
         bytes,
         "derived: " + counted(static_cast<int64_t>(others), "rank") +
             ", each with what this one has, and moments of its own blocks alone" +
             (request_.shards.group().divided() ? ", and its own experts alone" : "")});
  }

  /// What differs between ranks, in the host's memory: copies of parameters, experts that are fetched, and
  /// gradients of other ranks' rows.
  uint64_t rank_bytes(const ParameterTable& table, const RankShards& shards) const {
    const auto is_reached = [&](Place at) {
      return subject_.places[static_cast<size_t>(at)].host_reaches;
    };
    uint64_t bytes = 0;
    for (const ParameterArena& arena : parameter_arenas(table, plan_.policy)) {
      if (is_reached(arena.place)) bytes += arena.bytes;
    }
    size_t fetched = 0, layers = 0;  // of a layer; how many
    for (int32_t layer = 0; layer < subject_.spec.layers; ++layer) {
      if (!shards.fetches(layer) || !subject_.spec.has_experts(layer)) continue;
      if (!is_reached(table.block(table.find_block(BlockKind::expert, layer, 0)).place)) continue;
      fetched = std::max(fetched, fetched_bytes(table, layer, subject_.spec.experts, plan_.policy));
      ++layers;
    }
    bytes += std::min<size_t>(layers, 2) * fetched;
    const std::vector<int32_t> guests = guest_gradients(shards);
    const auto times = static_cast<uint64_t>(std::accumulate(guests.begin(), guests.end(), 0));
    return bytes + (is_reached(guest_place(table, shards))
                        ? times * guest_gradient_bytes(table, shards)
                        : 0);
  }

  /// Memory of devices that is the host's, too.
  void add_reached(std::vector<PlaceLines>& places) const {
    for (size_t at = kHostPlace + 1; at < places.size(); ++at) {
      if (!subject_.places[at].host_reaches) continue;
      places[kHostPlace].lines.push_back(
          {{MemoryUse::reached, static_cast<int>(at)},
           "memory of " + places[at].budget.name,
           sum_of(places[at].lines),
           "derived: all of its lines, as its memory is the host's"});
    }
  }

  void add_allowance(PlaceLines& host) const {
    const uint64_t allowance = running_bytes(subject_, request_.shards, far_places());
    const uint64_t before = sum_of(host.lines), budget = host.budget.bytes;
    const uint64_t left = budget > before ? budget - before : 0;
    std::string kinds;
    for (const KindOfRun& kind : kinds_of(subject_, request_.shards)) {
      kinds += ", " + size_text(kind.bytes) + " for " + kind.name;
    }
    host.lines.push_back({{MemoryUse::allowance},
                          "threads and logs",
                          std::clamp(left, allowance - std::min(allowance, kNextStart), allowance),
                          "policy: 983 kB, 147.5 kB per place and 16.38 kB per worker" + kinds +
                              (far_places() > 0 ? ", 12.58 MB per GPU" : "")});
  }

  const PlanSubject& subject_;
  const PlanRequest& request_;
  const Planner& planner_;
  Plan plan_;
};

}  // namespace

Plan make_plan(const PlanSubject& subject, const PlanRequest& request) {
  return PlanMaker(subject, request).make();
}

std::vector<const Schedule*> Plan::schedules() const {
  std::vector<const Schedule*> result;
  if (train) result.push_back(&train->schedule);
  if (drain) result.push_back(&*drain);
  if (eval) result.push_back(&*eval);
  if (decode) result.push_back(&*decode);
  return result;
}

std::optional<Place> Plan::short_place() const {
  for (size_t place = 0; place < places.size(); ++place) {
    if (!places[place].fits()) return static_cast<Place>(place);
  }
  return std::nullopt;
}

}  // namespace hearth
