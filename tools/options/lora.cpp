// Options: adapters.
#include "options/groups.h"

namespace hearth {

using enum Command;

constexpr CommandSet kAdapters{train, plan, eval, generate, export_};

// A table is read by columns, so it is laid out by hand.
// clang-format off
void add_lora(std::vector<Option>& table) {
  const std::string group = "LoRA";
  table.insert(
      table.end(),
      {{.name = "adapter", .group = group, .commands = kAdapters,
        .value = text_value(&Options::adapter, "DIR"),
        .help = "PEFT adapter that is added to the model; in training it is trained on",
        .default_text = "none"},
       {.name = "lora-r", .group = group, .commands = kTraining,
        .value = integer_value(&Options::lora_rank, 1, 4096),
        .help = "rank of the low-rank pairs", .aliases = {"lora-rank"}},
       {.name = "lora-alpha", .group = group, .commands = kTraining,
        .value = number_value(&Options::lora_alpha, {.least = 1e-6, .most = 1e6}),
        .help = "a pair adds alpha / rank times its product"},
       {.name = "lora-dropout", .group = group, .commands = kTraining,
        .value = number_value(&Options::lora_dropout, {.most = 1, .open_most = true}),
        .help = "dropout of what adapters read, in training"},
       {.name = "rslora", .group = group, .commands = kTraining,
        .value = flag_value(&Options::rslora),
        .help = "scale by alpha / sqrt(rank)", .aliases = {"use-rslora"}},
       {.name = "expert-r", .group = group, .commands = kTraining,
        .value = integer_value(&Options::expert_rank, 1, 4096),
        .help = "rank of the pairs of routed experts", .default_text = "--lora-r"},
       {.name = "lora-targets", .group = group, .commands = kTraining,
        .value = list_value(&Options::lora_targets, "GROUP|GLOB", true),
        .help = "what gets adapters: attention, experts, shared-experts, dense, router, head, or "
                "globs on names of tensors; repeatable, or separated by commas"},
       {.name = "experts", .group = group, .commands = kTraining,
        .value = experts_value(&Options::experts_top),
        .help = "which experts of a layer get adapters: all, or the share that gets most tokens of "
                "a sample of the data"},
       {.name = "adapter-layout", .group = group, .commands = kAdapters,
        .value = choice_value(&Options::adapter_layout,
                              NamedValues<AdapterLayout>{
                                  {"per-expert", AdapterLayout::per_expert},
                                  {"fused", AdapterLayout::fused}}),
        .help = "how pairs of experts are stored in the result: one by one, or as PEFT has them "
                "on transformers 5; of --adapter: fused ones are packed as PEFT does since 0.19.1"},
       {.name = "accept-other-base", .group = group, .commands = kAdapters,
        .value = flag_value(&Options::accept_other_base),
        .help = "take an adapter that was trained on another base"}});
}
// clang-format on

}  // namespace hearth
