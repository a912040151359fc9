// Options: what is printed.
#include "options/groups.h"

namespace hearth {

using enum Command;

// A table is read by columns, so it is laid out by hand.
// clang-format off
void add_output(std::vector<Option>& table) {
  const std::string group = "output";
  table.insert(
      table.end(),
      {{.name = "no-special", .group = group, .commands = {tokenize},
        .value = flag_value(&Options::no_special),
        .help = "leave out the ids that the post-processor adds"},
       {.name = "digest", .group = group, .commands = {inspect},
        .value = flag_value(&Options::digest), .help = "one hash a tensor, and one of all"},
       {.name = "compare", .group = group, .commands = {report}, .later = {plan},
        .value = pair_value(&Options::compare, "RUN RUN"),
        .help = "two runs on one page, instead of RUN_DIR; written into the first unless --out is "
                "given"},
       {.name = "json", .group = group, .commands = {eval, plan, inspect, tokenize},
        .value = flag_value(&Options::json), .help = "print one JSON document"},
       {.name = "quiet", .group = group, .commands = kAll,
        .value = flag_value(&Options::quiet), .help = "warnings and errors only",
        .may_change = true},
       {.name = "verbose", .group = group, .commands = kAll,
        .value = flag_value(&Options::verbose), .help = "more on stderr; of plan: every task", .may_change = true}});
}
// clang-format on

}  // namespace hearth
