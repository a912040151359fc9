// Options: studies without a checkpoint.
#include "options/groups.h"

namespace hearth {

using enum Command;

// A table is read by columns, so it is laid out by hand.
// clang-format off
void add_simulation(std::vector<Option>& table) {
  const std::string group = "simulation";
  table.insert(
      table.end(),
      {{.name = "experts", .group = group, .commands = {simulate},
        .value = integer_value(&Options::simulated_experts, 1, 4096), .unit = "experts",
        .help = "routed experts of a layer", .default_text = "none: 'routing' needs it"},
       {.name = "top-k", .group = group, .commands = {simulate},
        .value = integer_value(&Options::top_k, 1, 4096), .unit = "experts",
        .help = "experts that a token chooses, at most --experts"},
       {.name = "skew", .group = group, .commands = {simulate},
        .value = number_value(&Options::skew, {.most = 1, .open_least = true}), .unit = "G",
        .help = "sum of the squared shares of tokens by first choice: 1/E if all E experts are "
                "equally popular, 1 if one expert gets all tokens",
        .default_text = "none: 'routing' and 'step' need it"},
       {.name = "tokens", .group = group, .commands = {simulate},
        .value = integer_value(&Options::simulated_tokens, 1, int64_t{1} << 40), .unit = "tokens",
        .help = "tokens per step"},
       {.name = "layers", .group = group, .commands = {simulate},
        .value = integer_value(&Options::layers, 1, 65536), .unit = "layers", .help = "MoE layers"},
       {.name = "persistence", .group = group, .commands = {simulate},
        .value = number_value(&Options::persistence, {.most = 1}), .unit = "P",
        .help = "share of the E/4 least popular experts that are among the 3E/8 least popular of the "
                "next step"},
       {.name = "token-hit", .group = group, .commands = {simulate},
        .value = number_value(&Options::token_hit, {.most = 1}), .unit = "share of choices",
        .help = "also simulate a predictor that foretells this share of the choices",
        .default_text = "no predictor"},
       {.name = "shape", .group = group, .commands = {simulate},
        .value = text_value(&Options::shape, "S-8|S-16|S-64|M-8|M-16|L-8"),
        .help = "model of 'step': S, M or L for the hidden size, then the number of experts",
        .default_text = "none: 'step' needs it"},
       {.name = "gpus", .group = group, .commands = {simulate},
        .value = integer_value(&Options::gpus, 1, 64), .unit = "GPUs", .help = "GPUs of 'step'"},
       {.name = "roots", .group = group, .commands = {simulate},
        .value = integer_value(&Options::roots, 1, 64), .unit = "root complexes",
        .help = "root complexes, which GPUs share evenly", .default_text = "one for two GPUs"},
       {.name = "link", .group = group, .commands = {simulate},
        .value = size_value(&Options::gpu_link), .unit = "bytes per second",
        .help = "bandwidth of the link of each GPU, in each direction"},
       {.name = "root-link", .group = group, .commands = {simulate},
        .value = size_value(&Options::root_link), .unit = "bytes per second",
        .help = "bandwidth of each root complex, in each direction", .default_text = "no limit"},
       {.name = "gpu-memory", .group = group, .commands = {simulate},
        .value = size_value(&Options::study_gpu_memory), .unit = "bytes, or with k M G T Ki Mi Gi Ti",
        .help = "memory of each GPU"},
       {.name = "updates", .group = group, .commands = {simulate},
        .value = switch_value(&Options::study_updates),
        .help = "of 'step' and 'figure': count the time of the optimizer's updates and of the norm"},
       {.name = "cores-per-gpu", .group = group, .commands = {simulate},
        .value = integer_value(&Options::cores_per_gpu, 1, 256), .unit = "cores",
        .help = "cores of the host that work for each GPU"},
       {.name = "costs", .group = group, .commands = {simulate},
        .value = text_value(&Options::gpu_costs, "FILE"),
        .help = "cost table of the GPUs", .default_text = "estimated for an A800 in f32"},
       {.name = "host-costs", .group = group, .commands = {simulate},
        .value = text_value(&Options::host_costs, "FILE"),
        .help = "cost table of the host", .default_text = "estimated for a Xeon Gold 6348 in f32"},
       {.name = "batch", .group = group, .commands = {simulate},
        .value = integer_value(&Options::study_batch, 1, 1 << 20), .unit = "sequences",
        .help = "sequences of 128 tokens in a step"},
       {.name = "micro-batches", .group = group, .commands = {simulate},
        .value = integer_value(&Options::study_micro_batches, 1, 1024), .unit = "micro-batches",
        .help = "parts of the batch, which divide it", .default_text = "as many as GPUs"},
       {.name = "policy", .group = group, .commands = {simulate},
        .value = list_value(&Options::study_policies, "LIST", true),
        .help = "policies to simulate, separated by commas: gpipe-offload, mobius, roundpipe, aptmoe, auto, and what auto may become: static, makespan"},
       {.name = "divide-experts", .group = group, .commands = {simulate},
        .value = switch_value(&Options::divide_experts),
        .help = "let a GPU and the host compute one expert of a layer together, where tokens divide the "
                "experts by makespan"},
       {.name = "budget", .group = "measurement", .commands = {profile},
        .value = duration_value(&Options::budget_s, 1, 86400), .unit = "time with s, m or h",
        .help = "how long to measure"},
       {.name = "cluster", .group = "measurement", .commands = {profile},
        .value = flag_value(&Options::cluster),
        .help = "also measure the links between ranks, which are processes of mpirun or srun, or "
                "--thread-ranks, and put them into the table of the host"}});
}
// clang-format on

}  // namespace hearth
