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
        .help = "routed experts of a layer"},
       {.name = "top-k", .group = group, .commands = {simulate},
        .value = integer_value(&Options::top_k, 1, 4096), .unit = "experts",
        .help = "experts that a token chooses, at most --experts"},
       {.name = "skew", .group = group, .commands = {simulate},
        .value = number_value(&Options::skew, {.most = 1, .open_least = true}), .unit = "G",
        .help = "sum of the squared shares of tokens by first choice: 1/E if all E experts are "
                "equally popular, 1 if one expert gets all tokens"},
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
