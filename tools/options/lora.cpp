// Options: adapters.
#include "options/groups.h"
#include "options/special_values.h"

namespace hearth {

using enum Command;

constexpr CommandSet kAdapters{train, plan, eval, generate, chat, export_};

// A table is read by columns, so it is laid out by hand.
// clang-format off
void add_lora(std::vector<Option>& table) {
  const std::string group = "LoRA";
  const std::vector<Relation> lora{{"method", "lora"}};
  const std::vector<Relation> new_pairs{
      {"adapter", "", "ranks, scales and targets are those of the adapter"}};
  table.insert(
      table.end(),
      {{.name = "adapter", .group = group, .commands = kAdapters,
        .value = text_value(&Options::adapter, "DIR"),
        .help = "PEFT adapter to continue training, instead of a new one",
        .default_text = "none",
        .help_for = {{{eval, generate, chat}, "PEFT adapter to add to the model"},
                     {{export_}, "PEFT adapter, or run directory, to merge into --model"}}},
       {.name = "lora-r", .group = group, .commands = kTraining,
        .value = integer_value(&Options::lora_rank, 1, 4096), .unit = "rank",
        .help = "rank of the adapters", .needs = lora, .excludes = new_pairs, .aliases = {"lora-rank"}},
       {.name = "lora-alpha", .group = group, .commands = kTraining,
        .value = number_value(&Options::lora_alpha, {.least = 1e-6, .most = 1e6}),
        .help = "scale of the adapters: alpha / rank",
        .needs = lora, .excludes = new_pairs},
       {.name = "lora-dropout", .group = group, .commands = kTraining,
        .value = number_value(&Options::lora_dropout, {.most = 1, .open_most = true}),
        .unit = "probability", .help = "dropout on the inputs of the adapters during training",
        .needs = lora},
       {.name = "rslora", .group = group, .commands = kTraining,
        .value = flag_value(&Options::rslora),
        .help = "scale the adapters by alpha / sqrt(rank) instead of alpha / rank",
        .needs = lora, .excludes = new_pairs, .aliases = {"use-rslora"}},
       {.name = "lora-plus-ratio", .group = group, .commands = kTraining,
        .value = number_value(&Options::lora_plus_ratio, {.most = 1e4, .open_least = true}),
        .unit = "times --lr",
        .help = "learning rate of B of the adapters (LoRA+); A has --lr",
        .needs = lora, .aliases = {"loraplus-lr-ratio"}},
       {.name = "expert-r", .group = group, .commands = kTraining,
        .value = integer_value(&Options::expert_rank, 1, 4096), .unit = "rank",
        .help = "rank of the adapters of routed experts", .default_text = "--lora-r",
        .needs = lora, .excludes = new_pairs},
       {.name = "lora-targets", .group = group, .commands = kTraining,
        .value = list_value(&Options::lora_targets, "GROUP|GLOB", true),
        .help = "what gets adapters: attention, experts, shared-experts, dense, router, head, all (the "
                "first four), or globs on whole tensor names; comma-separated or repeatable",
        .default_text = "attention,experts",
        .needs = lora, .excludes = new_pairs},
       {.name = "experts", .group = group, .commands = kTraining,
        .value = experts_value(&Options::experts_top), .unit = "P: percent, above 0, at most 100",
        .help = "experts of each layer that get adapters: all, or the ones with the most tokens "
                "in a sample of the data",
        .needs = lora, .excludes = new_pairs},
       {.name = "adapter-layout", .group = group, .commands = kAdapters,
        .value = choice_value(&Options::adapter_layout,
                              NamedValues<AdapterLayout>{
                                  {"per-expert", AdapterLayout::per_expert},
                                  {"fused", AdapterLayout::fused}}),
        .help = "store the adapters of experts one by one, or stacked as PEFT does with "
                "transformers 5 (fused); a fused --adapter is packed as by PEFT 0.19.1 or later",
        .help_for = {{{eval, generate, chat}, "fused: --adapter is packed as by PEFT 0.19.1 or later"},
                     {{export_}, "with --from-state: store the adapters of experts one by one, or "
                                 "stacked as PEFT does with transformers 5 (fused). With --adapter: "
                                 "fused says that it is packed as by PEFT 0.19.1 or later",
                      "that of the run"}},
        .needs = lora},
       {.name = "accept-other-base", .group = group, .commands = kAdapters,
        .value = flag_value(&Options::accept_other_base),
        .help = "accept an --adapter that was trained on another base",
        .needs = lora}});
}
// clang-format on

}  // namespace hearth
