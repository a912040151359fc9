// Options: where and how the run computes.
#include "options/groups.h"

namespace hearth {

using enum Command;

// A table is read by columns, so it is laid out by hand.
// clang-format off
void add_run(std::vector<Option>& table) {
  const std::string group = "run";
  table.insert(
      table.end(),
      {{.name = "parallel", .group = group, .commands = kModel,
        .value = choice_value(&Options::parallel, NamedValues<std::string>{{"single", "single"}},
                              {"pipeline", "ep", "dp", "zebra", "hybrid-ep", "chunked",
                               "data-centric", "model-centric"}),
        .help = "planner of the step"},
       {.name = "devices", .group = group, .commands = kModel,
        .value = devices_value(),
        .help = "where to run; a list may name several devices (3x before one repeats it), but a run of "
                "this version takes one beside the host. Keys: mem (bytes), h2d, d2h, root-bw (bytes a "
                "second), latency (seconds, or with us ms s), cores, root (a name)"},
       {.name = "cpu-memory", .group = group, .commands = kModel,
        .value = size_value(&Options::cpu_memory), .unit = "bytes, or with k M G Ki Mi Gi",
        .help = "memory that the process may use", .default_text = "what the machine has"},
       {.name = "gpu-memory", .group = group, .commands = kModel,
        .value = size_value(&Options::gpu_memory), .unit = "bytes, or with k M G Ki Mi Gi",
        .help = "memory of each GPU that may be used",
        .default_text = "all but the larger of 5 % and 512 MiB"},
       {.name = "threads", .group = group, .commands = kModel,
        .value = integer_value(&Options::threads, 0, 4096), .unit = "threads",
        .help = "workers of an op; results do not depend on it; 0 = one a physical core",
        .may_change = true},
       {.name = "compute-dtype", .group = group, .commands = kModel,
        .value = choice_value(&Options::compute,
                              NamedValues<ComputeChoice>{{"auto", ComputeChoice::automatic},
                                                         {"f32", ComputeChoice::f32},
                                                         {"bf16", ComputeChoice::bf16}}),
        .help = "operands of products; auto: bf16 where it is fast and the checkpoint is bf16"},
       {.name = "recompute", .group = group, .commands = kTraining, .idle = kIdleOutsideTraining,
        .value = choice_value(&Options::recompute,
                              NamedValues<Recompute>{{"none", Recompute::none},
                                                     {"blocks", Recompute::blocks},
                                                     {"auto", Recompute::automatic}}),
        .help = "compute blocks again in the backward pass instead of keeping their values"},
       {.name = "deterministic", .group = group, .commands = kTraining, .idle = kIdleOutsideTraining,
        .value = flag_value(&Options::deterministic),
        .help = "ask for equal bits at each repetition; this version gives them always"},
       {.name = "logical-shards", .group = group, .commands = kTraining, .idle = kIdleOutsideTraining,
        .value = logical_shards_value(), .unit = "shards",
        .help = "parts that a step's sums are cut into, whatever the devices"},
       {.name = "plan", .group = group, .commands = kTraining,
        .value = text_value(&Options::plan_file, "FILE"),
        .help = "run exactly the plan that 'hearth plan --json' printed into this file, or refuse, "
                "naming what differs",
        .default_text = "made at the start"},
       {.name = "follow-links", .group = group,
        .commands = {train, plan, eval, generate, inspect, tokenize, export_, verify},
        .value = flag_value(&Options::follow_links),
        .help = "read links in a model directory that lead out of it"}});
}
// clang-format on

}  // namespace hearth
