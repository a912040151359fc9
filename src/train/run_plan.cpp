#include "train/run_plan.h"

#include <algorithm>

#include "base/system.h"
#include "device/host_stream.h"
#include "runtime/workspace.h"
#include "train/saved_state.h"

namespace hearth {

namespace {

constexpr const char* kProgram = "program and libraries";
constexpr const char* kData = "data";
constexpr const char* kLists = "lists of tasks";
constexpr const char* kReading = "buffers of reading files";
constexpr const char* kSaving = "names and digests of a save";
constexpr const char* kAllowance = "threads, logs and the check of the result";

/// What lies in the arena when it is fullest, by use. The rest of the arena is between buffers.
std::vector<MemoryLine> arena_lines(const Schedule& list, const std::string& bounds) {
  std::vector<uint64_t> best(kBufferClasses), now(kBufferClasses);
  uint64_t best_total = 0;
  std::vector<std::vector<const Buffer*>> begins(list.tasks.size()), ends(list.tasks.size());
  for (const Buffer& b : list.buffers) {
    if (b.place != kHostPlace) continue;
    begins[static_cast<size_t>(b.first)].push_back(&b);
    ends[static_cast<size_t>(b.last)].push_back(&b);
  }
  uint64_t total = 0;
  for (size_t t = 0; t < list.tasks.size(); ++t) {
    for (const Buffer* b : begins[t]) {
      now[static_cast<size_t>(b->use)] += b->bytes;
      total += b->bytes;
    }
    if (total > best_total) {
      best_total = total;
      best = now;
    }
    for (const Buffer* b : ends[t]) {
      now[static_cast<size_t>(b->use)] -= b->bytes;
      total -= b->bytes;
    }
  }
  const std::string basis = "derived: buffers at the fullest task; tokens: " + bounds;
  std::vector<MemoryLine> lines;
  for (int c = 0; c < kBufferClasses; ++c) {
    if (best[static_cast<size_t>(c)] == 0) continue;
    lines.push_back({name_of_list(list) + ": " + std::string(name_of(static_cast<BufferClass>(c))),
                     best[static_cast<size_t>(c)], basis});
  }
  const uint64_t gaps = list.arena_bytes[kHostPlace] - best_total;
  if (gaps > 0) {
    lines.push_back(
        {name_of_list(list) + ": between buffers", gaps, "derived: arena less its buffers"});
  }
  return lines;
}

uint64_t scratch_bytes(const ScratchNeed& need, int workers) {
  StreamOptions options;
  options.workers = workers;
  options.scratch_bytes = need.shared;
  options.worker_scratch_bytes = need.per_worker;
  return HostStream::memory_bytes(options);
}

/// Bytes of a list and of what an executor adds to it, in blocks of the allocator.
uint64_t list_bytes(const Schedule& list) {
  constexpr uint64_t kBlock = 32;  // around an allocation
  uint64_t bytes = list.buffers.size() * sizeof(Buffer);
  for (const Task& task : list.tasks) {
    bytes += sizeof(Task) + 96 + 3 * kBlock + task.blocks.size() * sizeof(BlockUse) +
             task.uses.size() * (sizeof(BufferUse) + sizeof(BoundPort));
  }
  return bytes + bytes / 2;  // vectors grow by doubling
}

std::string parameter_basis(const PlanSubject& subject, const CopyPolicy& policy, CopyRole role) {
  int64_t trained = 0, frozen = 0;
  for (const Tensor& t : subject.table.tensors()) {
    (policy.training && t.trainable ? trained : frozen) += t.size();
  }
  if (role == CopyRole::stored) {
    return "derived: " + std::to_string(frozen) + " parameters as stored, by " +
           subject.types_basis;
  }
  const size_t each = role == CopyRole::working ? size_of(DType::bf16) : size_of(policy.master);
  return "derived: " + std::to_string(trained) + " trained parameters, " + std::to_string(each) +
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
          "derived: master and two moments of " + std::to_string(trained) +
              " tensors, written in place under the next step"};
}

/// Thread stacks, log lines, JSON of states, code that runs for the first time; and for training
/// what opening the written result takes.
uint64_t allowance_of(const PlanSubject& subject, const PlanRequest& request) {
  const uint64_t policy = (12 + static_cast<uint64_t>(subject.workers)) << 20;
  return policy + (request.training ? subject.opening_bytes : 0);
}

}  // namespace

std::string name_of_list(const Schedule& list) {
  return list.pass == Pass::train  ? "activations"
         : list.pass == Pass::eval ? "activations of evaluation"
                                   : "activations of decoding";
}

ProcessMemory measure_process(uint64_t data_bytes) {
  release_freed_memory();
  const uint64_t resident = resident_bytes();
  return {resident - std::min(resident, data_bytes), data_bytes, peak_resident_bytes()};
}

PlanSubject subject_of(const RunSetup& setup, const ProcessMemory& process) {
  return {setup.spec,          setup.settings, setup.table,         setup.ops, setup.types_basis,
          setup.opening_bytes, setup.workers,  setup.memory_budget, process};
}

std::vector<const Schedule*> RunPlan::lists() const {
  std::vector<const Schedule*> result;
  if (train) result.push_back(&train->schedule);
  if (eval) result.push_back(&*eval);
  if (decode) result.push_back(&*decode);
  return result;
}

void RunPlan::grade(const MeasuredMemory& measured) {
  uint64_t sum = 0;
  for (const auto& [name, bytes] : measured.arenas) {
    // The lines of an arena share it: what the last of them has is the arena less the others.
    uint64_t left = bytes;
    MemoryLine* last = nullptr;
    for (MemoryLine& line : memory) {
      if (line.name != name && !line.name.starts_with(name + ":")) continue;
      line.measured = std::min(left, line.bytes);
      left -= *line.measured;
      last = &line;
    }
    if (last != nullptr) *last->measured += left;
    sum += bytes;
  }
  for (MemoryLine& line : memory) {
    if (line.name == kProgram || line.name == kData) line.measured = line.bytes;
    if (line.name == kLists) line.measured = measured.lists;
    if (line.name == kReading) line.measured = measured.read_buffers;
    if (line.name == kSaving) line.measured = measured.saving;
    if (line.name == kProgram || line.name == kData || line.name == kLists ||
        line.name == kReading || line.name == kSaving) {
      sum += *line.measured;
    }
  }
  for (MemoryLine& line : memory) {
    if (line.name == kAllowance) line.measured = measured.peak - std::min(measured.peak, sum);
  }
  measured_peak = measured.peak;
}

RunPlan make_run_plan(const RunSetup& setup, const PlanRequest& request) {
  return make_run_plan(subject_of(setup, measure_process(request.data_bytes)), request);
}

RunPlan make_run_plan(const PlanSubject& subject, const PlanRequest& request) {
  RunPlan plan;
  plan.policy = {request.training, subject.settings.compute, DType::f32};
  plan.budget = subject.budget;

  std::vector<MemoryLine>& lines = plan.memory;
  lines.push_back(
      {kProgram, subject.process.program, "measured: resident when planned, less the data"});
  if (request.data_bytes > 0) {
    lines.push_back({kData, request.data_bytes,
                     "measured: index of the rows, order of an epoch, rows held in memory"});
  }
  lines.push_back({kReading, Checkpoint::read_buffer_bytes(subject.workers),
                   "derived: 4 MiB a worker, of three at least"});
  for (const ParameterArena& arena : parameter_arenas(subject.table, plan.policy)) {
    lines.push_back({arena.name, arena.bytes, parameter_basis(subject, plan.policy, arena.role)});
  }
  if (request.training) lines.push_back(saving_line(subject));
  const auto sum = [&] {
    uint64_t total = 0;
    for (const MemoryLine& line : lines) total += line.bytes;
    return total;
  };

  const auto input = [&](int64_t tokens, int64_t micro_batches) {
    return PlanInput{subject.spec, subject.settings, subject.table, {&subject.ops},
                     tokens,       request.longest,  micro_batches};
  };
  const uint64_t allowance = allowance_of(subject, request);
  if (request.eval_tokens > 0) plan.eval = single_eval_schedule(input(request.eval_tokens, 1));
  if (request.decode_tokens > 0) {
    plan.decode = single_decode_schedule(input(request.decode_tokens, 1), request.cache_rows);
  }
  if (request.training) {
    const PlanInput train = input(request.tokens, request.micro_batches);
    for (const bool recompute : {request.recompute.value_or(false), true}) {
      // Scratch depends on the bounds of a micro-batch, not on how many there are; the lists are
      // about as large as the micro-batches are many.
      const Schedule one = single_train_schedule(input(request.tokens, 1), 1, recompute);
      const uint64_t lists = list_bytes(one) * static_cast<uint64_t>(request.micro_batches);
      const uint64_t used =
          sum() + scratch_bytes(one.scratch[kHostPlace], subject.workers) + lists + allowance / 2;
      if (request.group) {
        const int64_t group = std::min(*request.group, request.micro_batches);
        plan.train = {single_train_schedule(train, group, recompute), group, recompute};
      } else {
        plan.train = plan_single_train(train, request.recompute,
                                       {plan.budget > used ? plan.budget - used : 0});
      }
      if (plan.train->recompute == recompute) break;
    }
  }

  uint64_t in_lists = 0;
  const Schedule* largest = nullptr;
  for (const Schedule* list : plan.lists()) {
    in_lists += list_bytes(*list);
    if (largest == nullptr || list->arena_bytes[kHostPlace] > largest->arena_bytes[kHostPlace]) {
      largest = list;
    }
  }
  if (largest != nullptr) {
    for (MemoryLine& line : arena_lines(*largest, request.bounds_basis)) {
      lines.push_back(std::move(line));
    }
    lines.push_back(
        {kScratchLine,
         scratch_bytes(workspace_need(plan.lists()).scratch[kHostPlace], subject.workers),
         "derived: declared by kernels, " + std::to_string(subject.workers) + " workers"});
    lines.push_back({kLists, in_lists, "derived: tasks and their buffers"});
  }
  const uint64_t before = sum();
  const uint64_t left = plan.budget > before ? plan.budget - before : 0;
  lines.push_back({kAllowance, std::clamp(left, allowance / 2, allowance),
                   std::string("policy: 12 MiB and 1 MiB a worker") +
                       (request.training ? "; measured: what opening the model took" : "")});
  // What happened before the plan may have been the larger moment.
  plan.peak = std::max(sum(), subject.process.peak);
  return plan;
}

std::string whole_mebibytes(uint64_t bytes) {
  return std::to_string((bytes >> 20) + (bytes % (uint64_t{1} << 20) > 0 ? 1 : 0));
}

std::string what_is_missing(const RunPlan& plan) {
  return "the plan needs " + whole_mebibytes(plan.peak) + " MiB of host memory and " +
         whole_mebibytes(plan.budget) + " MiB may be used";
}

void require_fit(const RunPlan& plan) {
  if (plan.fits()) return;
  throw usage_error(what_is_missing(plan) + "; a smaller --micro-batch, --seq-len or " +
                    "--max-new-tokens needs less");
}

}  // namespace hearth
