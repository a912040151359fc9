// Options: the optimizer, its learning rate, and the losses.
#include "options/groups.h"
#include "options/special_values.h"

namespace hearth {

using enum Command;

// A table is read by columns, so it is laid out by hand.
// clang-format off
void add_optimizer(std::vector<Option>& table) {
  const std::string group = "optimizer";
  table.insert(
      table.end(),
      {{.name = "lr", .group = group, .commands = kTraining,
        .value = given_value(number_value(&Options::lr, {.most = 1000}), &Options::lr_given),
        .help = "learning rate after the warm-up", .default_text = "1e-5, with --method lora 1e-4",
        .aliases = {"learning-rate"}},
       {.name = "lr-schedule", .group = group, .commands = kTraining,
        .value = choice_value(&Options::lr_schedule,
                              NamedValues<LrSchedule>{{"constant", LrSchedule::constant},
                                                      {"linear", LrSchedule::linear},
                                                      {"cosine", LrSchedule::cosine},
                                                      {"cosine_with_min_lr",
                                                       LrSchedule::cosine_with_min_lr},
                                                      {"inverse_sqrt", LrSchedule::inverse_sqrt},
                                                      {"wsd", LrSchedule::wsd}}),
        .help = "course of the learning rate after the warm-up; linear and cosine end at 0, "
                "cosine_with_min_lr and wsd at --min-lr-ratio; wsd is constant up to the last tenth of "
                "the steps",
        .aliases = {"lr-scheduler-type", "lr-scheduler"}},
       {.name = "warmup", .group = group, .commands = kTraining,
        .value = warmup_value(kMaxSteps), .unit = "steps",
        .help = "raise the learning rate from 0 over these steps; wins over --warmup-ratio",
        .default_text = "from --warmup-ratio", .aliases = {"warmup-steps"}},
       {.name = "warmup-ratio", .group = group, .commands = kTraining,
        .value = number_value(&Options::warmup_ratio, {.most = 1}), .unit = "share of the steps",
        .help = "length of the warm-up",
        .default_text = "0.03, but at most a tenth of the steps"},
       {.name = "min-lr-ratio", .group = group, .commands = kTraining,
        .value = number_value(&Options::min_lr_ratio, {.most = 1}), .unit = "share of --lr",
        .help = "where cosine_with_min_lr and wsd end", .default_text = "0.1, of wsd 0"},
       {.name = "weight-decay", .group = group, .commands = kTraining,
        .value = number_value(&Options::weight_decay, {.most = 1000}),
        .help = "decoupled weight decay; norms and biases are exempt"},
       {.name = "beta1", .group = group, .commands = kTraining,
        .value = number_value(&Options::beta1, {.most = 1, .open_most = true}),
        .help = "AdamW: decay of the first moment", .aliases = {"adam-beta1"}},
       {.name = "beta2", .group = group, .commands = kTraining,
        .value = number_value(&Options::beta2, {.most = 1, .open_most = true}),
        .help = "AdamW: decay of the second moment", .aliases = {"adam-beta2"}},
       {.name = "eps", .group = group, .commands = kTraining,
        .value = number_value(&Options::eps, {.most = 1, .open_least = true}),
        .help = "AdamW: added to the square root of the second moment",
        .aliases = {"adam-epsilon"}},
       {.name = "max-grad-norm", .group = group, .commands = kTraining,
        .value = number_value(&Options::max_grad_norm, {}),
        .help = "clip the gradient to this norm; 0 = never"},
       {.name = "neftune", .group = group, .commands = kTraining,
        .value = number_value(&Options::neftune, {.most = 1e4}),
        .help = "add uniform noise to the embeddings in training (NEFTune): this number over the "
                "square root of tokens x hidden size, per document; 0 = off",
        .aliases = {"neftune-noise-alpha", "noisy-embedding-alpha"}},
       {.name = "router-aux-loss", .group = group, .commands = kTraining,
        .value = number_value(&Options::router_aux_loss, {}),
        .help = "coefficient of the auxiliary load-balancing loss; 0 = off",
        .default_text = "that of config.json if the router is trained, else 0",
        .aliases = {"router-aux-loss-coef", "moe-aux-loss-coef"}},
       {.name = "aux-loss-mode", .group = group, .commands = kOnData, .idle = {generate},
        .value = choice_value(&Options::aux_mode,
                              NamedValues<AuxLossMode>{{"per-layer", AuxLossMode::per_layer},
                                                       {"hf", AuxLossMode::hf}}),
        .help = "compute the auxiliary loss per layer and average it, or over all layers together as "
                "transformers does (hf)"},
       {.name = "router-z-loss", .group = group, .commands = kTraining,
        .value = number_value(&Options::router_z_loss, {.most = 1e6}),
        .help = "coefficient of the router's z-loss, the mean of logsumexp(logits)^2; 0 = off",
        .aliases = {"router-z-loss-coef", "moe-z-loss-coeff"}},
       {.name = "decay-all", .group = group, .commands = kTraining,
        .value = flag_value(&Options::decay_all), .help = "decay norms and biases as well"},
       {.name = "seed", .group = group, .commands = {train, plan, generate, chat, init, simulate},
        .idle = {eval},
        .value = seed_value(&Options::seed), .help = "seed of all random numbers",
        .help_for = {{kWriting, "seed of the sampling"}, {{init}, "seed of the weights"}, {{simulate}, "seed of who is popular"}}}});
}
// clang-format on

}  // namespace hearth
