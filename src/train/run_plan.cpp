#include "train/run_plan.h"

#include <algorithm>

#include "base/system.h"
#include "runtime/workspace.h"

namespace hearth {

namespace {

/// What lies in the arena when it is fullest, by use. The rest of the arena is between buffers.
std::vector<MemoryLine> arena_lines(const Schedule& list, const std::string& name) {
  std::vector<uint64_t> best(kBufferClasses), now(kBufferClasses);
  uint64_t best_total = 0;
  std::vector<std::vector<const Buffer*>> begins(list.tasks.size()), ends(list.tasks.size());
  for (const Buffer& b : list.buffers) {
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
  std::vector<MemoryLine> lines;
  for (int c = 0; c < kBufferClasses; ++c) {
    if (best[static_cast<size_t>(c)] == 0) continue;
    lines.push_back({name + ": " + std::string(name_of(static_cast<BufferClass>(c))),
                     best[static_cast<size_t>(c)], "buffers at the fullest task"});
  }
  const uint64_t gaps = list.arena_bytes - best_total;
  if (gaps > 0) lines.push_back({name + ": between buffers", gaps, "arena less its buffers"});
  return lines;
}

uint64_t scratch_bytes(const ScratchNeed& need, int workers) {
  return need.shared + static_cast<uint64_t>(workers) * need.per_worker;
}

}  // namespace

std::vector<const Schedule*> RunPlan::lists() const {
  std::vector<const Schedule*> result;
  if (train) result.push_back(&train->schedule);
  if (eval) result.push_back(&*eval);
  if (decode) result.push_back(&*decode);
  return result;
}

void RunPlan::grade(uint64_t peak_bytes) {
  uint64_t reserved = 0;
  for (size_t i = 1; i < memory.size(); ++i) {
    memory[i].measured = memory[i].bytes;
    reserved += memory[i].bytes;
  }
  memory[0].measured = peak_bytes > reserved ? peak_bytes - reserved : 0;
}

RunPlan make_run_plan(const RunSetup& setup, const PlanRequest& request) {
  RunPlan plan;
  plan.policy = {request.training, setup.settings.compute, DType::f32};
  plan.budget = setup.memory_budget;

  std::vector<MemoryLine>& lines = plan.memory;
  lines.push_back({"program and libraries", resident_bytes(), "measured at this point"});
  // What comes later: stacks of workers, code pages and tables of the libraries when first used.
  lines.push_back(
      {"threads and allocator", (8 + uint64_t(setup.workers)) << 20, "8 MiB and 1 MiB a worker"});
  lines.push_back(
      {"buffers of reading files", Checkpoint::read_buffer_bytes(setup.workers), "4 MiB a worker"});
  for (const ParameterArena& arena : parameter_arenas(setup.table, plan.policy)) {
    lines.push_back({arena.name, arena.bytes, "parameter table"});
  }
  if (request.data_bytes > 0) lines.push_back({"data", request.data_bytes, "ids and labels"});
  const auto sum = [&] {
    uint64_t total = 0;
    for (const MemoryLine& line : lines) total += line.bytes;
    return total;
  };

  const auto input = [&](int64_t tokens, int64_t micro_batches) {
    return PlanInput{setup.spec, setup.settings,  setup.table,  setup.ops,
                     tokens,     request.longest, micro_batches};
  };
  if (request.eval_tokens > 0) plan.eval = single_eval_schedule(input(request.eval_tokens, 1));
  if (request.decode_tokens > 0) {
    plan.decode = single_decode_schedule(input(request.decode_tokens, 1), request.cache_rows);
  }
  if (request.training) {
    const PlanInput train = input(request.tokens, request.micro_batches);
    // Scratch depends on the bounds of a micro-batch, not on how many there are.
    const Schedule one = single_train_schedule(input(request.tokens, 1), 1, false);
    const uint64_t used = sum() + scratch_bytes(one.scratch, setup.workers);
    const uint64_t left = plan.budget > used ? plan.budget - used : 0;
    if (request.group) {
      const int64_t group = std::min(*request.group, request.micro_batches);
      const bool recompute = request.recompute.value_or(false);
      plan.train = {single_train_schedule(train, group, recompute), group, recompute};
    } else {
      plan.train = plan_single_train(train, request.recompute, left);
    }
  }

  const Schedule* largest = nullptr;
  for (const Schedule* list : plan.lists()) {
    if (largest == nullptr || list->arena_bytes > largest->arena_bytes) largest = list;
  }
  if (largest != nullptr) {
    const char* name = largest->pass == Pass::train  ? "activations"
                       : largest->pass == Pass::eval ? "activations of evaluation"
                                                     : "activations of decoding";
    for (MemoryLine& line : arena_lines(*largest, name)) lines.push_back(std::move(line));
    lines.push_back({"scratch of kernels",
                     scratch_bytes(workspace_need(plan.lists()).scratch, setup.workers),
                     "declared by kernels, " + std::to_string(setup.workers) + " workers"});
  }
  // The measurement of the machine ended before; it may have been the larger moment.
  plan.peak = std::max(sum(), peak_resident_bytes());
  return plan;
}

}  // namespace hearth
