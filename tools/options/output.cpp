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
        .help = "leave out the ids that the post-processor adds",
        .excludes = {{"data"}}},
       {.name = "digest", .group = group, .commands = {inspect},
        .value = flag_value(&Options::digest), .help = "print one hash per tensor, and one of all"},
       {.name = "compare", .group = group, .commands = {report},
        .value = pair_value(&Options::compare, "RUN RUN"),
        .help = "show two runs on one page, instead of RUN_DIR; the page goes into the first run "
                "unless --out is given",
        .default_text = "none"},
       {.name = "compare", .group = group, .commands = {plan},
        .value = list_value(&Options::compared_plans, "A,B", true),
        .help = "print two plans side by side. A and B are modes of --parallel, or files that 'hearth plan "
                "--json' printed",
        .default_text = "none", .excludes = {{"plan"}, {"trace"}, {"tune"}}},
       {.name = "tune", .group = group, .commands = {plan},
        .value = duration_value(&Options::tune_s, 0, 86400), .unit = "time with s, m or h",
        .help = "run three steps of the default schedule, and of the three others that are predicted to "
                "be fastest, for at most this long in all; print the fastest as the plan",
        .default_text = "nothing is tried",
        .excludes = {{"plan"}, {"trace"}, {"machine"}, {"topology"}}},
       {.name = "json", .group = group, .commands = {train, eval, generate, chat, plan, inspect, tokenize, export_, verify, report, simulate, doctor, profile},
        .value = flag_value(&Options::json), .help = "print one JSON document",
        .help_for = {{{tokenize}, "with --data: print one JSON object per row"},
                     {{generate}, "print {\"text\", \"tokens\", \"finish\"} at the end, instead of the text; "
                                  "--data prints JSON Lines in any case"},
                     {{train}, "print one JSON document at the end: result, verdict, losses, time"},
                     {{verify}, "print {\"ok\"}, true or false, instead of lines"},
                     {{export_, report}, "print {\"out\"}, the path of what was written"},
                     {{chat}, "print one JSON object per turn, {\"content\"}"}},
        .may_change = true},
       {.name = "quiet", .group = group, .commands = kAll,
        .value = flag_value(&Options::quiet), .help = "print warnings and errors only",
        .excludes = {{"verbose"}}, .may_change = true, .of_rank = true},
       {.name = "verbose", .group = group, .commands = kAll,
        .value = flag_value(&Options::verbose), .help = "print more on stderr",
        .help_for = {{{plan}, "print more on stderr, and every task of the schedule"},
                     {{simulate}, "print more on stderr, and the counts of every step and layer"}},
        .may_change = true, .of_rank = true}});
}
// clang-format on

}  // namespace hearth
