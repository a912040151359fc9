// Options: options of generate and chat.
#include "options/groups.h"

namespace hearth {

using enum Command;

// A table is read by columns, so it is laid out by hand.
// clang-format off
void add_generation(std::vector<Option>& table) {
  const std::string group = "generation";
  table.insert(
      table.end(),
      {{.name = "prompt", .group = group, .commands = {generate},
        .value = text_value(&Options::prompt, "TEXT"), .help = "text to continue",
        .default_text = "none"},
       {.name = "messages", .group = group, .commands = {generate},
        .value = text_value(&Options::messages_file, "FILE"),
        .help = "chat to answer: a JSON list of {role, content}, or an object with \"messages\"",
        .default_text = "none"},
       {.name = "system", .group = group, .commands = kWriting,
        .value = text_value(&Options::system, "TEXT"),
        .help = "system message, the first of a chat", .default_text = "none"},
       {.name = "max-new-tokens", .group = group, .commands = kWriting,
        .value = integer_value(&Options::max_new_tokens, 1, 1 << 20), .unit = "tokens",
        .help = "stop after this many tokens"},
       {.name = "temperature", .group = group, .commands = kWriting,
        .value = number_value(&Options::temperature, {.most = 100}),
        .help = "temperature of sampling; 0 = always the likeliest token"},
       {.name = "top-k", .group = group, .commands = kWriting,
        .value = integer_value(&Options::sample_top_k, 0, 1 << 24), .unit = "tokens",
        .help = "sample from this many of the likeliest tokens; 0 = from all"},
       {.name = "top-p", .group = group, .commands = kWriting,
        .value = number_value(&Options::top_p, {.most = 1, .open_least = true}),
        .unit = "probability",
        .help = "sample from the likeliest tokens that have this probability together"},
       {.name = "min-p", .group = group, .commands = kWriting,
        .value = number_value(&Options::min_p, {.most = 1}),
        .unit = "share of the largest probability",
        .help = "do not sample tokens that are less likely than this"},
       {.name = "repetition-penalty", .group = group, .commands = kWriting,
        .value = number_value(&Options::repetition_penalty, {.most = 100, .open_least = true}),
        .help = "divide the positive logits of tokens that the text already has by this, multiply "
                "the negative ones; 1 = off"},
       {.name = "stop", .group = group, .commands = kWriting,
        .value = list_value(&Options::stop, "TEXT"),
        .help = "end the answer before this text; repeatable", .default_text = "none"},
       {.name = "kv-cache", .group = group, .commands = kWriting,
        .value = switch_value(&Options::kv_cache),
        .help = "keep keys and values; off computes the whole text again for each token, to the "
                "same result"}});
}
// clang-format on

}  // namespace hearth
