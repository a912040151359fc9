// Options: how rows are read and which tokens are trained.
#include "options/groups.h"

namespace hearth {

using enum Command;

// A table is read by columns, so it is laid out by hand.
// clang-format off
constexpr CommandSet kTemplate{train, plan, eval, generate, tokenize};

void add_data(std::vector<Option>& table) {
  const std::string group = "data";
  table.insert(
      table.end(),
      {{.name = "format", .group = group, .commands = kRows, .idle = {generate},
        .value = choice_value(&Options::format,
                              NamedValues<RowFormat>{{"auto", RowFormat::automatic},
                                                     {"text", RowFormat::text},
                                                     {"messages", RowFormat::messages},
                                                     {"completion", RowFormat::completion},
                                                     {"alpaca", RowFormat::alpaca},
                                                     {"sharegpt", RowFormat::sharegpt},
                                                     {"tokens", RowFormat::tokens}}),
        .help = "kind of the rows; auto: by their keys"},
       {.name = "chat-template", .group = group, .commands = kTemplate,
        .value = text_value(&Options::chat_template, "FILE|NAME"),
        .help = "how chats become text: chatml, one of the model's templates, or a Jinja file",
        .default_text = "that of the model"},
       {.name = "template-date", .group = group, .commands = kTemplate,
        .value = date_value(&Options::template_date),
        .help = "the day that a chat template takes for today", .default_text = "today"},
       {.name = "train-on", .group = group, .commands = kRows, .idle = {generate},
        .value = choice_value(&Options::train_on,
                              NamedValues<TrainOn>{{"auto", TrainOn::automatic},
                                                   {"assistant", TrainOn::assistant},
                                                   {"last", TrainOn::last},
                                                   {"completion", TrainOn::completion},
                                                   {"all", TrainOn::all}}),
        .help = "what is trained: the assistant's turns, the last of them, what answers the prompt, "
                "or everything; auto: by the kind of row"},
       {.name = "no-special-in-content", .group = group, .commands = kRows, .idle = {generate},
        .value = flag_value(&Options::no_special_in_content),
        .help = "special tokens typed in messages are encoded as plain text"},
       {.name = "val-size", .group = group, .commands = kTraining,
        .value = share_or_count_value(&Options::val_size), .unit = "share of the rows, or rows",
        .help = "rows to keep for evaluation, chosen by --seed before packing; in place of "
                "--eval-data",
        .default_text = "none", .aliases = {"val-set-size"}},
       {.name = "data-cache", .group = group, .commands = kOnData, .idle = {generate},
        .value = size_value(&Options::data_cache), .unit = "bytes, or with k M G Ki Mi Gi",
        .help = "most that tokenised rows may take in the user's cache directory, of all runs "
                "together; the longest unused go first; 0: nothing is kept",
        .default_text = "20Gi", .may_change = true},
       {.name = "skip-bad-rows", .group = group, .commands = kRows, .idle = {generate},
        .value = integer_value(&Options::skip_bad_rows, 0), .unit = "rows",
        .help = "bad rows to pass over, each listed, before they are an error"}});
}
// clang-format on

}  // namespace hearth
