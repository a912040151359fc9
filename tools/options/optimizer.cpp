// Options: the optimizer, its schedule, and the losses.
#include "options/groups.h"

namespace hearth {

using enum Command;

// A table is read by columns, so it is laid out by hand.
// clang-format off
void add_optimizer(std::vector<Option>& table) {
  const std::string group = "optimizer";
  table.insert(
      table.end(),
      {{.name = "lr", .group = group, .commands = kTraining,
        .value = number_value(&Options::lr, {.most = 1000}), .help = "learning rate",
        .aliases = {"learning-rate"}},
       {.name = "lr-schedule", .group = group, .commands = kTraining,
        .value = choice_value(&Options::lr_schedule,
                              NamedValues<LrSchedule>{{"constant", LrSchedule::constant},
                                                      {"linear", LrSchedule::linear},
                                                      {"cosine", LrSchedule::cosine}}),
        .help = "learning rate after the warm-up", .aliases = {"lr-scheduler-type",
                                                               "lr-scheduler"}},
       {.name = "warmup", .group = group, .commands = kTraining,
        .value = warmup_value(kMaxSteps), .unit = "steps",
        .help = "steps in which the rate rises from 0; wins over --warmup-ratio",
        .default_text = "by --warmup-ratio", .aliases = {"warmup-steps"}},
       {.name = "warmup-ratio", .group = group, .commands = kTraining,
        .value = number_value(&Options::warmup_ratio, {.most = 1}), .unit = "of the steps",
        .help = "the same as a part of the run"},
       {.name = "weight-decay", .group = group, .commands = kTraining,
        .value = number_value(&Options::weight_decay, {.most = 1000}),
        .help = "decoupled weight decay; not of norms and biases"},
       {.name = "beta1", .group = group, .commands = kTraining,
        .value = number_value(&Options::beta1, {.most = 1, .open_most = true}),
        .help = "AdamW: decay of the first moment", .aliases = {"adam-beta1"}},
       {.name = "beta2", .group = group, .commands = kTraining,
        .value = number_value(&Options::beta2, {.most = 1, .open_most = true}),
        .help = "AdamW: decay of the second moment", .aliases = {"adam-beta2"}},
       {.name = "eps", .group = group, .commands = kTraining,
        .value = number_value(&Options::eps, {.most = 1, .open_least = true}),
        .help = "AdamW: added to the root of the second moment",
        .aliases = {"adam-epsilon"}},
       {.name = "max-grad-norm", .group = group, .commands = kTraining,
        .value = number_value(&Options::max_grad_norm, {}),
        .help = "gradients are clipped to this norm; 0 = off"},
       {.name = "router-aux-loss", .group = group, .commands = kTraining,
        .value = number_value(&Options::router_aux_loss, {}),
        .help = "coefficient of the auxiliary load-balancing loss",
        .default_text = "that of config.json where the router trains, else 0",
        .aliases = {"router-aux-loss-coef", "moe-aux-loss-coef"}},
       {.name = "aux-loss-mode", .group = group, .commands = kOnData, .idle = {generate},
        .value = choice_value(&Options::aux_mode,
                              NamedValues<AuxLossMode>{{"per-layer", AuxLossMode::per_layer},
                                                       {"hf", AuxLossMode::hf}}),
        .help = "auxiliary loss of each layer, averaged, or of all layers pooled (transformers)"},
       {.name = "router-z-loss", .group = group, .commands = kTraining,
        .value = number_value(&Options::router_z_loss, {.most = 1e6}),
        .help = "coefficient of the router's z-loss: mean square of log sum exp of its logits",
        .aliases = {"router-z-loss-coef", "moe-z-loss-coeff"}},
       {.name = "decay-all", .group = group, .commands = kTraining,
        .value = flag_value(&Options::decay_all), .help = "decay norms and biases, too"},
       {.name = "seed", .group = group, .commands = {train, plan, generate, init},
        .idle = {eval},
        .value = seed_value(&Options::seed), .help = "key of all random numbers"}});
}
// clang-format on

}  // namespace hearth
