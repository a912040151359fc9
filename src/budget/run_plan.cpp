#include "budget/run_plan.h"

#include <algorithm>

#include "base/counted.h"
#include "base/system.h"
#include "budget/plan_lines.h"
#include "budget/schedule_memory.h"
#include "device/device_memory.h"
#include "state/saved_state.h"

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
  const size_t each = role == CopyRole::working ? size_of(DType::bf16) : size_of(policy.master);
  return "derived: " + counted(trained, "trained parameter") + ", " + std::to_string(each) +
         " bytes each" + (role == CopyRole::working ? ", of those that enter products" : "");
}

/// What a save takes beside the copies that it reads in place: it runs under the steps, so this is
/// memory of its own.
MemoryLine saving_line(const PlanSubject& subject) {
  size_t trained = 0, name_bytes = 0;
  for (const Tensor& t : subject.table.tensors()) {
    trained += t.trainable;
    name_bytes += t.trainable ? t.name.size() : 0;
  }
  return {kSaving, save_memory_bytes(3 * trained, 3 * name_bytes),
          "derived: master and two moments of " + counted(static_cast<int64_t>(trained), "tensor") +
              ", written in place under the next step"};
}

/// Thread stacks, log lines, JSON of states, code that runs for the first time; and for training
/// what opening the written result takes.
uint64_t allowance_of(const PlanSubject& subject, const PlanRequest& request) {
  const uint64_t policy = (12 + static_cast<uint64_t>(subject.workers)) << 20;
  return policy + (request.training ? subject.opening_bytes : 0);
}

}  // namespace

ProcessMemory measure_process(uint64_t data_bytes) {
  release_freed_memory();
  const uint64_t resident = resident_bytes();
  return {resident - std::min(resident, data_bytes), data_bytes, peak_resident_bytes()};
}

PlanSubject subject_of(const RunSetup& setup, const ProcessMemory& process) {
  std::vector<PlanPlace> places;
  for (const RunPlace& place : setup.devices.places) {
    places.push_back(
        {place.name, place.ops, place.budget, place.more_memory, place.device->host_reaches()});
  }
  return {setup.spec,        setup.settings,      setup.table,   std::move(places),
          setup.types_basis, setup.opening_bytes, setup.workers, process};
}

namespace {

/// Of the lines; a plan's peak.
uint64_t sum_of(const std::vector<MemoryLine>& lines) {
  uint64_t total = 0;
  for (const MemoryLine& line : lines) total += line.bytes;
  return total;
}

/// Puts a plan together, line by line.
class Planner {
 public:
  Planner(const PlanSubject& subject, const PlanRequest& request)
      : subject_(subject), request_(request) {
    plan_.policy = {request.training, subject.settings.compute, DType::f32};
    for (const PlanPlace& place : subject.places) {
      plan_.places.push_back({place.name, {}, 0, place.budget, place.more_memory});
    }
  }

  RunPlan make() {
    add_process();
    add_parameters();
    make_lists();
    add_lists();
    add_reached();
    add_allowance();
    for (PlacePlan& place : plan_.places) place.peak = sum_of(place.lines);
    // What happened before the plan may have been the larger moment.
    PlacePlan& host = plan_.places[kHostPlace];
    host.peak = std::max(host.peak, subject_.process.peak);
    return std::move(plan_);
  }

 private:
  std::vector<MemoryLine>& lines(Place place = kHostPlace) {
    return plan_.places[static_cast<size_t>(place)].lines;
  }
  /// Devices whose memory the host does not reach.
  uint64_t far_places() const {
    return static_cast<uint64_t>(std::count_if(subject_.places.begin(), subject_.places.end(),
                                               [](const PlanPlace& p) { return !p.host_reaches; }));
  }

  void add_process() {
    lines().push_back(
        {kProgram, subject_.process.program, "measured: resident when planned, less the data"});
    if (request_.data_bytes > 0) {
      lines().push_back({kData, request_.data_bytes,
                         "measured: index of the rows, order of an epoch, rows held in memory"});
    }
    const bool staged = far_places() > 0;
    lines().push_back({kReading, Checkpoint::read_buffer_bytes(subject_.workers, staged),
                       staged ? "derived: 8 MiB a worker, of two at least"
                              : "derived: 4 MiB a worker, of three at least"});
    if (!staged) return;
    lines().push_back({kStaging, far_places() * DeviceMemory::kPinnedBytes,
                       "derived: pinned, two pieces a device"});
  }

  void add_parameters() {
    for (const ParameterArena& arena : parameter_arenas(subject_.table, plan_.policy)) {
      HEARTH_CHECK(arena.place < std::ssize(plan_.places), "plan: a block at no place of the run");
      lines(arena.place)
          .push_back({arena.name, arena.bytes,
                      parameter_basis(subject_, plan_.policy, arena.place, arena.role)});
    }
    if (request_.training) lines().push_back(saving_line(subject_));
  }

  PlanInput input(int64_t tokens, int64_t micro_batches) const {
    std::vector<const OpSet*> ops;
    for (const PlanPlace& place : subject_.places) ops.push_back(place.ops);
    return {subject_.spec, subject_.settings, subject_.table, std::move(ops),
            tokens,        request_.longest,  micro_batches};
  }

  void make_lists() {
    if (request_.eval_tokens > 0) plan_.eval = single_eval_schedule(input(request_.eval_tokens, 1));
    if (request_.decode_tokens > 0) {
      plan_.decode = single_decode_schedule(input(request_.decode_tokens, 1), request_.cache_rows);
    }
    if (!request_.training) return;
    const PlanInput train = input(request_.tokens, request_.micro_batches);
    for (const bool recompute : {request_.recompute.value_or(false), true}) {
      if (request_.group) {
        const int64_t group = std::min(*request_.group, request_.micro_batches);
        plan_.train = {single_train_schedule(train, group, recompute), group, recompute};
      } else {
        plan_.train = plan_single_train(train, request_.recompute, left_for_arenas(recompute));
      }
      if (plan_.train->recompute == recompute) break;
    }
  }

  /// Bytes by place that the buffers of a training list may take.
  std::vector<uint64_t> left_for_arenas(bool recompute) const {
    // Scratch depends on the bounds of a micro-batch, not on how many there are; the lists are
    // about as large as the micro-batches are many.
    const Schedule one = single_train_schedule(input(request_.tokens, 1), 1, recompute);
    std::vector<uint64_t> left;
    for (size_t at = 0; at < plan_.places.size(); ++at) {
      const PlacePlan& place = plan_.places[at];
      uint64_t used = sum_of(place.lines) + scratch_bytes(scratch_of(one, static_cast<Place>(at)),
                                                          subject_.places[at], subject_.workers);
      if (at == kHostPlace) {
        used += list_bytes(one) * static_cast<uint64_t>(request_.micro_batches);
        used += allowance_of(subject_, request_) / 2;
      }
      left.push_back(place.budget > used ? place.budget - used : 0);
      // Memory that is the host's, too, is bounded by what that has left.
      if (at == kHostPlace || !subject_.places[at].host_reaches) continue;
      left[at] = std::min(left[at], left[kHostPlace] - std::min(left[kHostPlace], used));
    }
    return left;
  }

  void add_lists() {
    const std::vector<const Schedule*> lists = plan_.lists();
    if (lists.empty()) return;
    for (size_t at = 0; at < plan_.places.size(); ++at) {
      const auto place = static_cast<Place>(at);
      const Schedule* largest = lists.front();
      ScratchNeed scratch;
      for (const Schedule* list : lists) {
        if (arena_bytes(*list, place) > arena_bytes(*largest, place)) largest = list;
        scratch = max_of(scratch, scratch_of(*list, place));
      }
      if (place != kHostPlace && arena_bytes(*largest, place) == 0) continue;  // nothing runs there
      for (MemoryLine& line : arena_lines(*largest, place, request_.bounds_basis)) {
        this->lines(place).push_back(std::move(line));
      }
      const PlanPlace& of = subject_.places[at];
      this->lines(place).push_back(
          {kScratchLine, scratch_bytes(scratch, of, subject_.workers),
           "derived: declared by kernels" +
               (of.host_reaches ? ", " + counted(subject_.workers, "worker") : "")});
    }
    uint64_t in_lists = 0;
    for (const Schedule* list : lists) in_lists += list_bytes(*list);
    this->lines().push_back({kLists, in_lists, "derived: tasks and their buffers"});
  }

  /// Memory of devices that is the host's, too.
  void add_reached() {
    for (size_t at = kHostPlace + 1; at < plan_.places.size(); ++at) {
      const PlacePlan& place = plan_.places[at];
      if (!subject_.places[at].host_reaches) continue;
      lines().push_back({memory_line_of(place.name), sum_of(place.lines),
                         "derived: all of its lines, as its memory is the host's"});
    }
  }

  void add_allowance() {
    const uint64_t allowance = allowance_of(subject_, request_);
    const uint64_t before = sum_of(lines()), budget = plan_.host().budget;
    const uint64_t left = budget > before ? budget - before : 0;
    lines().push_back({kAllowance, std::clamp(left, allowance / 2, allowance),
                       std::string("policy: 12 MiB and 1 MiB a worker") +
                           (request_.training ? "; measured: what opening the model took" : "")});
  }

  const PlanSubject& subject_;
  const PlanRequest& request_;
  RunPlan plan_;
};

}  // namespace

RunPlan make_run_plan(const PlanSubject& subject, const PlanRequest& request) {
  return Planner(subject, request).make();
}

}  // namespace hearth
