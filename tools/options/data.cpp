// Options: how rows are read and which tokens are trained.
#include "options/groups.h"
#include "options/special_values.h"

namespace hearth {

using enum Command;

// A table is read by columns, so it is laid out by hand.
// clang-format off
constexpr CommandSet kTemplate{train, plan, eval, generate, chat, tokenize};

void add_data(std::vector<Option>& table) {
  const std::string group = "data";
  table.insert(
      table.end(),
      {{.name = "format", .group = group, .commands = kPrompts,
        .value = choice_value(&Options::format,
                              NamedValues<RowFormat>{{"auto", RowFormat::automatic},
                                                     {"text", RowFormat::text},
                                                     {"messages", RowFormat::messages},
                                                     {"completion", RowFormat::completion},
                                                     {"alpaca", RowFormat::alpaca},
                                                     {"sharegpt", RowFormat::sharegpt},
                                                     {"tokens", RowFormat::tokens}}),
        .help = "format of the rows; auto: detect it from the keys of the rows"},
       {.name = "chat-template", .group = group, .commands = kTemplate,
        .value = chat_template_value(),
        .help = "chat template: a Jinja file, chatml, or the name of one of the model's templates",
        .default_text = "the model's own"},
       {.name = "template-args", .group = group, .commands = kTemplate,
        .value = template_args_value(),
        .help = "set a variable of the chat template, such as enable_thinking=false; repeatable. The "
                "result's template has it as its default",
        .default_text = "none"},
       {.name = "template-date", .group = group, .commands = kTemplate,
        .value = date_value(&Options::template_date),
        .help = "date that chat templates use as today",
        .default_text = "today at the first start",
        .help_for = {{{eval, generate, chat, tokenize}, "date that chat templates use as today",
                      "today"}}},
       {.name = "train-on", .group = group, .commands = kRows, .idle = {generate},
        .value = choice_value(&Options::train_on,
                              NamedValues<TrainOn>{{"auto", TrainOn::automatic},
                                                   {"assistant", TrainOn::assistant},
                                                   {"last", TrainOn::last},
                                                   {"completion", TrainOn::completion},
                                                   {"all", TrainOn::all}}),
        .help = "train the assistant's turns, its last turn, the completion of the prompt, or all "
                "tokens; auto: assistant for chats, completion for prompts and alpaca, else all",
        .help_for = {{{eval}, "evaluate the assistant's turns, its last turn, the completion of the "
                              "prompt, or all tokens; auto: assistant for chats, completion for "
                              "prompts and alpaca, else all"}}},
       {.name = "no-special-in-content", .group = group, .commands = kRows, .idle = {generate},
        .value = flag_value(&Options::no_special_in_content),
        .help = "treat special tokens inside message content as plain text"},
       {.name = "columns", .group = group, .commands = kPrompts,
        .value = columns_value(),
        .help = "read columns of the rows under other names: prompt=question,completion=answer reads "
                "question as the prompt; comma-separated or repeatable",
        .default_text = "none"},
       {.name = "max-samples", .group = group, .commands = kPrompts,
        .value = integer_value(&Options::max_samples, 0), .unit = "rows",
        .help = "take only the first rows of each file; 0 = all"},
       {.name = "val-size", .group = group, .commands = kTraining,
        .value = share_or_count_value(&Options::val_size), .unit = "share of the rows, or rows",
        .help = "hold back rows for evaluation, chosen by --seed before packing; instead of "
                "--eval-data",
        .default_text = "0", .excludes = {{"eval-data"}}, .aliases = {"val-set-size"}},
       {.name = "data-cache", .group = group, .commands = kOnData, .idle = {generate},
        .value = size_value(&Options::data_cache), .unit = "bytes, or with k M G T Ki Mi Gi Ti (64GiB, too)",
        .help = "limit of the cache of tokenized rows, shared by all runs of the user; evicts the "
                "least recently used data; 0 = no cache",
        .default_text = "20Gi", .may_change = true},
       {.name = "skip-bad-rows", .group = group, .commands = kPrompts,
        .value = integer_value(&Options::skip_bad_rows, 0), .unit = "rows",
        .help = "skip and list up to this many bad rows; the next one is an error"}});
}
// clang-format on

}  // namespace hearth
