// Options: where and how the run computes.
#include "options/groups.h"
#include "options/special_values.h"

namespace hearth {

using enum Command;

// A table is read by columns, so it is laid out by hand.
// clang-format off
void add_run(std::vector<Option>& table) {
  const std::string group = "run";
  table.insert(
      table.end(),
      {{.name = "parallel", .group = group, .commands = kModel,
        .value = parallel_value(),
        .help = "how the run is spread. single: over one device and the host; pipeline: layers are "
                "cut into stages, one per device, and micro-batches pass through them; dp: over ranks, each "
                "with the whole model and a part of the micro-batches; ep: the same, but the ranks share the "
                "routed experts, and tokens go to the rank of their experts; zebra: some ranks compute attention, the others "
                "experts",
        .default_text = "pipeline with several devices or a policy, else single", .may_change = true},
       {.name = "policy", .group = group, .commands = kModel,
        .value = policy_value(),
        .help = "how a model runs that is larger than the devices. static, with host in --devices: each "
                "device also holds the experts of its layers that a sample of the data uses most, as many as "
                "fit beside the rest; the host holds and computes the others. gpipe-offload: all weights are "
                "on the host, devices compute, and load what a task needs when it begins; mobius: they load "
                "it while the tasks before run; roundpipe: the same, but stages go round the devices, are cut "
                "apart for forward and backward, and backward computes activations again; aptmoe, with host in --devices: the same, but the tokens of "
                "each layer decide which experts devices load and which the host computes. auto, with host in "
                "--devices: static if the devices hold all experts; else of static, aptmoe, mobius and a "
                "split by tokens of the least makespan the one whose step is predicted to be the shortest",
        .default_text = "auto; all is on the devices if host is not in --devices"},
       {.name = "equation", .group = group, .commands = kModel,
        .value = equation_value(),
        .help = "of --policy aptmoe: which experts devices load. corrected: what is on the device already "
                "counts as loaded, and gradients go home; printed: as the paper has it",
        .needs = {{"policy", "aptmoe"}}, .may_change = true},
       {.name = "partial-sums", .group = group, .commands = kModel,
        .value = switch_value(&Options::partial_sums),
        .help = "where experts are at another place than the dense parts of their layer, return one "
                "weighted sum per token instead of a row per choice. Moves fewer bytes; changes rounding"},
       {.name = "divide-experts", .group = group, .commands = kTraining, .idle = kIdleOutsideTraining,
        .value = switch_value(&Options::divide_experts),
        .help = "of --policy auto, if tokens divide the experts of each layer: let the host and the device "
                "compute one expert of a layer together, each some of its columns, where that is "
                "predicted to take less time. Changes rounding",
        .needs = {{"policy", "auto"}}, .excludes = {{"partial-sums", "on"}}},
       {.name = "predictor", .group = group, .commands = kModel,
        .value = predictor_value(),
        .help = "of --policy aptmoe and auto: what foretells the tokens of experts. history: the tokens of the last step "
                "and of the micro-batches that have passed; router: a small model of each router, trained "
                "beside the run, which reads what the router of the layer before reads, or of N layers before "
                "(1 to 4); pre-attention: the same, but it reads what enters the layer; oracle: the tokens of "
                "the journal that --replay-decisions names, for studies. Results are the same",
        .needs = {{"policy", "aptmoe"}, {"policy", "auto"}}, .may_change = true},
       {.name = "phases", .group = group, .commands = kModel,
        .value = phases_value(),
        .help = "of --policy aptmoe: which phases load experts ahead of their use. inter-stage: experts "
                "that earlier steps foretell, while the tasks before run; inter-layer: experts that are foretold "
                "for the next layer, when a layer is divided; inter-expert: experts that the real tokens of the "
                "layer ask for, else the foretold tokens divide it. Results are the same with any",
        .needs = {{"policy", "aptmoe"}}, .may_change = true},
       {.name = "devices", .group = group, .commands = {train, plan, eval, generate, chat, doctor, profile},
        .value = devices_value(),
        .help = "where to compute. auto means host in this version; cuda:0 asks for the first "
                "GPU, cuda:0,host leaves experts that do not fit to the host. host is the CPU "
                "with all its NUMA nodes, host:1 is node 1 alone (0 to 1023, as of cuda). virtual "
                "is host memory that acts as a device. Its keys: mem (bytes, at least 1; default "
                "no limit); h2d and d2h (bytes/s, at least 1; default no limit); latency "
                "(seconds, or with us ms s, 0 to 60 s; default 0); cores (at least 1; default a "
                "share of the host's); root (name of a root complex; default none); root-bw "
                "(bytes/s of all devices of that root, at least 1; default no limit); shrink "
                "(STEP:BYTES, the budget from that step on, step and bytes at least 1, at most "
                "mem; default none); costs (file, a cost table that paces the place, the last key "
                "of its item; default real speed). The host has cores (how many it uses; default "
                "all that are left) and costs. All cores of a list: at most 4 per core of this "
                "machine, or 64 if that is more. 3x before virtual repeats it, 1 to 64 times; a "
                "list has at most 64 devices. Several devices hold a stage of the layers each; "
                "with host in the list, the experts that do not fit are on the host",
        .help_for = {{{doctor}, "devices whose links are measured: cuda:0, or virtual as for train. "
                                "auto means every GPU; a GPU asked for by number must be there"},
                     {{profile}, "places to measure: cuda:0, or virtual as for train. The host is "
                                 "always measured"}},
        .of_rank = true},
       {.name = "topology", .group = group, .commands = {train, plan, eval, generate, chat, doctor},
        .value = text_value(&Options::topology, "FILE.xml"),
        .help = "the machine, as hwloc's XML (lstopo FILE.xml). Virtual devices stand in the places of its "
                "accelerators, by PCI address. train binds nothing if FILE is another machine; plan "
                "takes GPUs of FILE, too",
        .default_text = "this machine",
        .help_for = {{{doctor}, "describe the machine of this file instead, hwloc's XML (lstopo FILE.xml); "
                                "measures nothing"}}},
       {.name = "machine", .group = group, .commands = {plan},
        .value = list_value(&Options::machine, "FILE"),
        .help = "plan for another machine: the JSON that 'hearth doctor --json' prints there (or "
                "--topology), and that of 'hearth profile --json', or cost tables. Measures nothing "
                "here; repeatable",
        .default_text = "this machine"},
       {.name = "cpu-memory", .group = group, .commands = kModelOrProfile,
        .value = size_value(&Options::cpu_memory), .unit = "bytes, or with k M G T Ki Mi Gi Ti (64GiB, too)",
        .help = "memory that the process may use", .default_text = "all that the machine has",
        .help_for = {{{profile}, "memory that the process may use", "1Gi more than at the start"}},
        .of_rank = true},
       {.name = "gpu-memory", .group = group, .commands = kModelOrProfile,
        .value = size_value(&Options::gpu_memory), .unit = "bytes, or with k M G T Ki Mi Gi Ti (64GiB, too)",
        .help = "memory to use of each GPU",
        .default_text = "all but 5 % or 512 MiB, whichever is more",
        .of_rank = true},
       {.name = "threads", .group = group, .commands = kModelOrProfile,
        .value = integer_value(&Options::threads, 0, 4096), .unit = "threads",
        .help = "worker threads (0 = one per physical core); results are identical for any value",
        .may_change = true,
        .of_rank = true},
       {.name = "compute-dtype", .group = group, .commands = kModel,
        .value = choice_value(&Options::compute,
                              NamedValues<ComputeChoice>{{"auto", ComputeChoice::automatic},
                                                         {"f32", ComputeChoice::f32},
                                                         {"bf16", ComputeChoice::bf16}}),
        .help = "type of the operands of matrix products; auto: bf16 if the processor has it in "
                "hardware and the checkpoint is bf16, else f32"},
       {.name = "recompute", .group = group, .commands = kTraining, .idle = kIdleOutsideTraining,
        .value = choice_value(&Options::recompute,
                              NamedValues<Recompute>{{"none", Recompute::none},
                                                     {"blocks", Recompute::blocks},
                                                     {"auto", Recompute::automatic}}),
        .help = "compute blocks again in the backward pass instead of keeping their values; auto: if "
                "memory is too short otherwise"},
       {.name = "deterministic", .group = group, .commands = kTraining, .idle = kIdleOutsideTraining,
        .value = flag_value(&Options::deterministic),
        .help = "require bit-identical repeats (always on)", .hidden = true, .may_change = true},
       {.name = "logical-shards", .group = group, .commands = kTraining, .idle = kIdleOutsideTraining,
        .value = logical_shards_value(), .unit = "shards",
        .help = "contiguous parts of a step whose gradients are added as a fixed binary tree, so that the "
                "bits do not depend on the number of ranks. Divides --grad-accum",
        .default_text = "the ranks of the first start that compute micro-batches"},
       {.name = "thread-ranks", .group = group, .commands = kTrainingOrProfile, .idle = kIdleOutsideTraining,
        .value = integer_value(&Options::thread_ranks, 1, 1024), .unit = "ranks",
        .help = "ranks of --parallel dp, ep, hybrid-ep or zebra, as threads of this process (mpirun and srun start "
                "processes). Each has weights and gradients in memory of its own, with ep and zebra of its "
                "experts alone, and --threads workers. Divides --logical-shards, but with zebra; results are "
                "identical for any value",
        .help_for = {{{profile}, "threads of this process whose links --cluster measures"}},
        .may_change = true},
       {.name = "expert-ranks", .group = group, .commands = kTraining, .idle = kIdleOutsideTraining,
        .value = integer_value(&Options::expert_ranks, 0, 1024), .unit = "ranks",
        .help = "neighbouring ranks that share the routed experts (--parallel ep): each computes its own "
                "experts for the tokens of all. Divides the ranks; 0: all ranks. With zebra: expert ranks of a "
                "group; several groups train beside each other; 0: one group. Results are identical for any "
                "value",
        .may_change = true},
       {.name = "attention-ranks", .group = group, .commands = kTraining, .idle = kIdleOutsideTraining,
        .value = integer_value(&Options::attention_ranks, 0, 1024), .unit = "ranks",
        .help = "with --parallel zebra: number of ranks that compute everything but the routed experts; the "
                "other ranks compute these. The larger of the two numbers is a multiple of the smaller, and "
                "these ranks divide --logical-shards; results are identical for any value",
        .may_change = true},
       {.name = "expert-shift", .group = group, .commands = kTraining, .idle = kIdleOutsideTraining,
        .value = expert_shift_value(), .unit = "experts",
        .help = "with --parallel zebra: how many experts each expert rank gives to the attention ranks, one "
                "number for each layer with experts. auto: as many as save simulated time; off: none. "
                "Results are identical for any value",
        .may_change = true},
       {.name = "levels", .group = group, .commands = kTraining, .idle = kIdleOutsideTraining,
        .value = levels_value(), .unit = "ranks",
        .help = "with --parallel hybrid-ep: ranks by level, the slowest links first: 2,4 are two groups of "
                "four neighbours. Their product is the number of ranks. Results are identical for any value",
        .default_text = "hosts, then ranks of a host",
        .may_change = true},
       {.name = "domains", .group = group, .commands = kTraining, .idle = kIdleOutsideTraining,
        .value = domains_value(), .unit = "ranks",
        .help = "with --parallel hybrid-ep: by level, how many ranks hold the same experts, so that fewer "
                "tokens travel. Each number divides that of its level. auto: what saves simulated time over "
                "ep; results are identical for any value",
        .may_change = true},
       {.name = "kept-layers", .group = group, .commands = kTraining, .idle = kIdleOutsideTraining,
        .value = kept_layers_value(), .unit = "layers",
        .help = "with --parallel hybrid-ep: in the first N layers each rank keeps the experts that it computes "
                "with. In the others it keeps only those it owns (rank 0 keeps all), and fetches the rest before "
                "each use. auto: all, or as many as fit the memory; results are identical for any value",
        .may_change = true},
       {.name = "wire", .group = group, .commands = kTraining, .idle = kIdleOutsideTraining,
        .value = wire_value(), .unit = "ratio",
        .help = "with --parallel hybrid-ep: how weights of trained experts travel to the ranks that hold them. "
                "residual:R sends the largest differences to the mean expert of the layer, in 1/R of the bytes; "
                "auto chooses R for each expert. Not dense: another run, with other results"},
       {.name = "wire-threshold", .group = group, .commands = kTraining, .idle = kIdleOutsideTraining,
        .value = number_value(&Options::wire_threshold, {.least = 0}),
        .unit = "relative error",
        .help = "error of an expert's weights above which --wire auto takes a lower ratio, then sends them "
                "dense, and residual:R sends them dense"},
       {.name = "wire-consistent", .group = group, .commands = kTraining, .idle = kIdleOutsideTraining,
        .value = flag_value(&Options::wire_consistent),
        .help = "with --wire: the owner of an expert computes with what it sent to the others, so results do "
                "not depend on ranks and domains; takes memory for a copy of experts with f32"},
       {.name = "rank-devices", .group = group, .commands = kTraining, .idle = kIdleOutsideTraining,
        .value = rank_devices_value(),
        .help = "devices of some ranks, which do not have those of --devices: '0-1=cuda:0;2=host' gives ranks "
                "0 and 1 a GPU, each of its machine, and has rank 2 compute on the host",
        .default_text = "every rank has those of --devices",
        .may_change = true},
       {.name = "rank-limit", .group = group, .commands = kTraining, .idle = kIdleOutsideTraining,
        .value = duration_value(&Options::rank_limit, 1, 86400),
        .help = "a rank that gives no sign of life for this time, or for ten median steps if that is "
                "more, has failed; the others end with 6",
        .may_change = true},
       {.name = "rank-links", .group = group, .commands = kTrainingOrProfile, .idle = kIdleOutsideTraining,
        .value = rank_links_value(), .unit = "bytes/s, seconds (or with us ms s)",
        .help = "rate of each thread rank's link to the others, in each direction, and the latency of a "
                "message: 125M:50us. Results are identical for any value",
        .default_text = "the speed of memory",
        .may_change = true},
       {.name = "plan", .group = group, .commands = kTraining,
        .value = text_value(&Options::plan_file, "FILE"),
        .help = "run exactly the plan in this file, as 'hearth plan --json' prints it, or refuse and "
                "name what differs",
        .default_text = "planned at the start"},
       {.name = "profile", .group = group, .commands = kTraining,
        .value = text_value(&Options::profile, "DIR"),
        .help = "predict times by the cost tables in this directory, as 'hearth profile --out DIR' "
                "writes them: one per place. A resume uses the tables of the saved state",
        .default_text = "a table in the cache that fits, else measured for at most 5s"},
       {.name = "follow-links", .group = group,
        .commands = {train, plan, eval, generate, chat, inspect, tokenize, export_, verify, profile},
        .value = flag_value(&Options::follow_links),
        .help = "read links in a model directory that lead out of it"}});
}
// clang-format on

}  // namespace hearth
