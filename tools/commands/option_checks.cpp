#include "commands/option_checks.h"

#include <algorithm>

#include "base/error.h"
#include "base/numbers.h"
#include "base/paths.h"
#include "data/samples/data_files.h"
#include "options/command_table.h"
#include "options/option_lookup.h"
#include "study/study_shape.h"

namespace hearth {
namespace {

const Given* find_given(const std::vector<Given>& given, const std::string& name) {
  const auto it = std::find_if(given.begin(), given.end(),
                               [&](const Given& g) { return g.option->name == name; });
  return it == given.end() ? nullptr : &*it;
}

bool is_missing(const std::string& name, Command command, const Options& options) {
  const std::string value = find_option(name, command)->value.get(options);
  return value == "null" || value == "[]";
}

/// Whether the option says something else than its default.
bool is_set(const Option& option, const Options& options) {
  static const Options defaults;
  return option.value.get(options) != option.value.get(defaults);
}

std::string flag_of(const Relation& relation) {
  return "--" + relation.option + (relation.value.empty() ? "" : " " + relation.value);
}

bool holds(const Relation& relation, const Options& options) {
  const Option& option = *find_option(relation.option);
  return relation.value.empty() ? is_set(option, options)
                                : option.value.get(options) == relation.value;
}

/// What the row of an option says of other options. An option that the command does not take cannot
/// be needed, and has its default, which excludes nothing.
void check_relations(const Option& option, Command command, const OptionPlaces& places,
                     const Options& options, Problems& problems) {
  const auto place = places.find(option.name);
  std::string name = place == places.end() ? "--" + option.name : place->second.where;
  if (!name.starts_with("--")) name += ":";  // a key of a file, with its line
  std::string needed;
  bool met = false;
  for (const Relation& relation : option.needs) {
    if (!find_option(relation.option)->commands.contains(command)) continue;
    needed += (needed.empty() ? "" : " or ") + flag_of(relation);
    met = met || holds(relation, options);
  }
  if (!needed.empty() && !met) {
    problems.add(name + " needs " + needed);
    return;
  }
  for (const Relation& relation : option.excludes) {
    if (!holds(relation, options)) continue;
    problems.add(name + " does not go with " + flag_of(relation) +
                 (relation.why.empty() ? "; give one of the two" : ": " + relation.why));
  }
}

/// Micro-batches that hold the tokens of --batch-tokens when they are full.
int64_t micro_batches_of(const Options& options) {
  const int64_t full = options.seq_len * options.micro_batch;
  return (*options.batch_tokens + full - 1) / full;
}

void check_sampling(const std::vector<Given>& flags, const Options& options, Problems& problems) {
  for (const char* name : {"top-k", "top-p", "min-p"}) {
    if (!find_given(flags, name) || options.temperature != 0) continue;
    problems.add(std::string("--") + name +
                 " needs --temperature above 0: at 0 the likeliest token is taken");
  }
}

// --data beside a prompt is accepted, as all of train's data options are.
void check_generate(const Options& options, Problems& problems) {
  if (!options.prompt.empty() && !options.messages_file.empty()) {
    problems.add("expected one of --prompt, --messages and --data, found both");
  } else if (options.prompt.empty() && options.messages_file.empty() && options.data.empty()) {
    problems.add("expected one of --prompt, --messages and --data, found none");
  }
}

// The operand is another way to write --model.
void check_chat(Options& options, Problems& problems) {
  if (options.operand.empty() == options.model.empty()) {
    if (options.model.empty() && !options.adapter.empty()) return;  // it names its base
    problems.add(options.model.empty() ? "expected RUN or --model: hearth chat RUN"
                                       : "expected RUN or --model, found both; give one");
  } else if (options.model.empty()) {
    options.model = options.operand;
  }
}

// Rows are shown whole unless a length is given; a text or rows, not both.
void check_tokenize(const std::vector<Given>& flags, Options& options, Problems& problems) {
  if (!find_given(flags, "seq-len")) options.seq_len = 0;
  if (options.data.empty()) {
    for (const Given& given : flags) {
      if (given.option->group == "data" || given.option->name == "seq-len" ||
          given.option->name == "overflow") {
        problems.add("--" + given.option->name + " needs --data");
      }
    }
    return;
  }
  if (!options.operand.empty()) {
    problems.add("expected FILE or --data, found both; give one");
  }
}

void check_export(const std::vector<Given>& flags, Options& options, Problems& problems) {
  options.layout_given = find_given(flags, "adapter-layout") != nullptr;
  if (!options.from_state.empty() && !options.adapter.empty()) {
    problems.add("expected one of --adapter and --from-state, found both");
  } else if (options.from_state.empty() && options.adapter.empty() && options.model.empty()) {
    problems.add("expected a run as --model, an --adapter or a --from-state, found none");
  }
  if (const std::string problem = out_in_input(options); !problem.empty()) problems.add(problem);
}

void check_data(Command command, const Options& options, Problems& problems) {
  const auto check = [&](const std::vector<std::string>& files, const char* option, bool weights) {
    try {
      parse_data_files(files, option, weights);
    } catch (const Error& error) {
      problems.add(error.what());
    }
  };
  const bool training = command == Command::train || command == Command::plan;
  const bool reads = command == Command::eval || command == Command::generate;
  if (training || reads) check(options.data, "--data", training);
  if (training) check(options.eval_data, "--eval-data", false);
  const auto reads_stdin = [](const std::vector<std::string>& files) {
    return std::any_of(files.begin(), files.end(), [](const std::string& file) {
      return file == "-" || file.starts_with("-:");
    });
  };
  if (training && reads_stdin(options.data) && reads_stdin(options.eval_data)) {
    problems.add("--data and --eval-data: standard input (-) can be read only once");
  }
}

constexpr int64_t kMostSimulatedCounts = int64_t{1} << 24;  // steps x layers x experts

bool is_one_of(const std::string& text, std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [&](const char* name) { return text == name; });
}

void check_routing(const Options& options, Problems& problems) {
  if (!options.simulated_experts) return;
  const int64_t experts = *options.simulated_experts;
  if (options.top_k > experts) {
    problems.add("--top-k " + std::to_string(options.top_k) + ": expected at most --experts, " +
                 std::to_string(experts));
  }
  const double least = 1 / static_cast<double>(experts);
  if (options.skew && *options.skew < least) {
    problems.add("--skew " + format_number(*options.skew) + ": expected at least 1/E, " +
                 format_number(least) + " with --experts " + std::to_string(experts));
  }
  const int64_t most_layers = kMostSimulatedCounts / experts, most = most_layers / options.layers;
  if (most == 0) {
    problems.add("--layers " + std::to_string(options.layers) + ": expected at most " +
                 std::to_string(most_layers) + " with --experts " + std::to_string(experts));
  } else if (options.steps.value_or(1) > most) {
    problems.add("--steps " + std::to_string(options.steps.value_or(1)) + ": expected at most " +
                 std::to_string(most) + " with these --layers and --experts");
  }
}

void check_step(const Options& options, Problems& problems) {
  const StudyShape* const shape = find_study_shape(options.shape);
  if (!options.shape.empty() && shape == nullptr) {
    problems.add("--shape: expected S-8, S-16, S-64, M-8, M-16 or L-8, found " +
                 quoted(options.shape));
  }
  if (shape != nullptr && options.skew && *options.skew < 1 / static_cast<double>(shape->experts)) {
    problems.add("--skew " + format_number(*options.skew) + ": expected at least 1/E, " +
                 format_number(1 / static_cast<double>(shape->experts)) + " with --shape " +
                 shape->name);
  }
  if (options.roots.value_or(1) > options.gpus) {
    problems.add("--roots " + std::to_string(*options.roots) + ": expected at most --gpus, " +
                 std::to_string(options.gpus));
  }
  const int64_t parts = options.study_micro_batches.value_or(options.gpus);
  if (options.study_batch % parts != 0) {
    problems.add("--batch " + std::to_string(options.study_batch) + ": expected a multiple of " +
                 std::to_string(parts) + " micro-batches");
  }
  if (options.gpu_link == 0) problems.add("--link: expected more than 0 bytes per second");
  for (const std::string& policy : options.study_policies) {
    if (!is_one_of(policy, {"static", "gpipe-offload", "mobius", "roundpipe", "aptmoe", "makespan",
                            "auto"})) {
      problems.add(
          "--policy: expected static, gpipe-offload, mobius, roundpipe, aptmoe, makespan or auto, "
          "found " +
          quoted(policy));
    }
  }
  if (options.study_policies.empty()) problems.add("--policy: expected a policy");
}

/// Each study has options of its own.
void check_simulate(const std::vector<Given>& flags, const Options& options, Problems& problems) {
  const std::string& study = options.operand;
  for (const Given& flag : flags) {
    const std::string& name = flag.option->name;
    const bool of_all = is_one_of(name, {"json", "quiet", "verbose"});
    const bool of_routing = is_one_of(name, {"experts", "top-k", "skew", "tokens", "layers",
                                             "steps", "persistence", "token-hit", "seed", "trace"});
    const bool of_step =
        is_one_of(name, {"shape", "gpus", "roots", "link", "root-link", "gpu-memory",
                         "cores-per-gpu", "costs", "host-costs", "skew", "batch", "micro-batches",
                         "policy", "divide-experts", "seed", "trace"});
    const bool of_figure = name == "updates";
    if (of_all || (study == "routing" && of_routing) ||
        (study == "step" && (of_step || of_figure)) || (study == "figure" && of_figure)) {
      continue;
    }
    problems.add(flag.where + ": no option of simulate " + study +
                 (of_routing && of_step ? "; routing and step have it"
                  : of_routing          ? "; routing has it"
                                        : "; step has it"));
  }
  const auto require = [&](const char* name, bool is_there) {
    if (!is_there && !find_given(flags, name))
      problems.add(std::string("--") + name + " is missing");
  };
  if (study == "routing") {
    require("experts", options.simulated_experts.has_value());
    require("skew", options.skew.has_value());
    check_routing(options, problems);
  } else if (study == "step") {
    require("shape", !options.shape.empty());
    require("skew", options.skew.has_value());
    check_step(options, problems);
  }
}

bool is_path(const std::string& name) { return name.find_first_of("/.") != std::string::npos; }

bool is_mode(const std::string& name) {
  Options mode;
  return !is_path(name) && !find_option("parallel")->value.set(mode, {name});
}

/// Plans in files need no model; nor does a name that is wrong, as told.
bool compares_no_mode(const Options& options) {
  const auto& names = options.compared_plans;
  return !names.empty() && std::none_of(names.begin(), names.end(), is_mode);
}

/// Two names of modes or files.
void check_compared(const Options& options, Problems& problems) {
  const size_t plans = options.compared_plans.size();
  if (plans != 0 && plans != 2) {
    problems.add("--compare: expected two plans, A,B; found " + std::to_string(plans));
  }
  for (const std::string& name : options.compared_plans) {
    if (is_path(name)) continue;
    Options mode;
    if (const auto problem = find_option("parallel")->value.set(mode, {name})) {
      problems.add("--compare: " + *problem + "; or the path of a plan, such as ./" + name);
    }
  }
}

void check_training(const std::vector<Given>& flags, Options& options, Problems& problems) {
  for (std::string& name : options.allow_change) {
    const Option* option = find_option(name);
    if (option && option->commands.contains(Command::train)) {
      name = option->name;
    } else {
      problems.add("--allow-change: " + quoted(name) + " is not an option of train" +
                   suggestion(Command::train, name, ""));
    }
  }
  // Adapters begin at zero and take a larger rate than weights that are trained already.
  if (!options.lr_given && options.method == Method::lora) options.lr = 1e-4;
  options.packing_by_data = !options.packing_given;
  options.epochs_by_data = !options.epochs_given;
  // A flag beats the file's other way to say it.
  if (find_given(flags, "grad-accum") && !find_given(flags, "batch-tokens")) {
    options.batch_tokens.reset();
  }
  if (options.batch_tokens) {
    options.grad_accum = micro_batches_of(options);
    if (options.grad_accum > 1 << 20) {
      problems.add("--batch-tokens: " + std::to_string(options.grad_accum) +
                   " micro-batches per step, more than " + std::to_string(1 << 20));
    }
  }
}

}  // namespace

std::string out_in_input(const Options& options) {
  for (const std::string& input : {options.from_state, options.model, options.adapter}) {
    const std::string folder = without_trailing_slashes(input);
    const std::string below = folder == "/" ? folder : folder + "/";
    if (folder.empty() || (options.out != folder && !options.out.starts_with(below))) continue;
    return "--out " + quoted(options.out) + ": lies in the input " + quoted(input) +
           ", which export never changes; choose another directory";
  }
  return "";
}

std::optional<std::string> study_problem(const Options& options) {
  const std::string& study = options.operand;
  const std::string known =
      "hearth simulate routing --experts E --skew G, hearth simulate step --shape S-8 --skew G, "
      "hearth simulate figure 11, hearth simulate zebra, hearth simulate domains";
  if (is_one_of(study, {"routing", "step", "zebra", "domains"})) return std::nullopt;
  if (study.empty()) return "expected a study: " + known;
  if (study != "figure") {
    return "expected routing, step, figure, zebra or domains, found " + quoted(study) + ": " +
           known;
  }
  if (is_one_of(options.figure, {"11", "12", "13", "14"})) return std::nullopt;
  return "simulate figure: expected 11, 12, 13 or 14" +
         (options.figure.empty() ? std::string() : ", found " + quoted(options.figure));
}

void check_contradictions(const std::vector<Given>& given, const Options& options,
                          Problems& problems) {
  const Given* tokens = find_given(given, "batch-tokens");
  const Given* count = find_given(given, "grad-accum");
  // A recorded configuration has both, and they agree.
  if (tokens && count && options.batch_tokens && options.grad_accum != micro_batches_of(options)) {
    problems.add(count->where + " and " + tokens->where + " contradict each other: " +
                 std::to_string(*options.batch_tokens) + " tokens are " +
                 std::to_string(micro_batches_of(options)) + " micro-batches; give one");
  }
}

void check_data_paths(Command command, const Options& options) {
  const bool training = command == Command::train || command == Command::plan;
  const bool prints = command == Command::tokenize || command == Command::generate;
  if (!training && command != Command::eval && !prints) return;
  find_data_files(options.data, "--data", training);
  if (training) {
    find_data_files(options.eval_data, "--eval-data", false);
  }
}

void check_together(const CommandEntry& entry, const std::vector<Given>& flags,
                    const OptionPlaces& places, Options& options, Problems& problems) {
  if (entry.command == Command::plan) check_compared(options, problems);
  for (const std::string& name : entry.required) {
    if (name == "model" && compares_no_mode(options)) continue;
    if (!is_missing(name, entry.command, options)) continue;
    const bool reads = entry.command == Command::eval || entry.command == Command::generate;
    if (reads && name == "model" && !options.adapter.empty()) continue;  // it names its base
    if (find_given(flags, name) && !problems.empty()) continue;  // its value is wrong, as told
    problems.add("--" + name + " is missing");
  }
  for (const Option& option : option_table()) {
    if (!option.commands.contains(entry.command) || !is_set(option, options)) continue;
    check_relations(option, entry.command, places, options, problems);
  }
  const bool compares = entry.command == Command::report && find_given(flags, "compare");
  if (compares && !options.operand.empty()) {
    problems.add("expected RUN_DIR or --compare RUN RUN, found both");
  }
  if (!entry.operand.empty() && entry.operand[0] != '[' && options.operand.empty() && !compares) {
    const std::string what = entry.operand.ends_with("DIR") ? "a directory" : entry.operand;
    problems.add("expected " + what + ": hearth " + entry.name + " " + entry.operand);
  }
  check_data(entry.command, options, problems);
  const bool generates = entry.command == Command::generate, chats = entry.command == Command::chat;
  if (generates || chats) check_sampling(flags, options, problems);
  if (generates) check_generate(options, problems);
  if (chats) check_chat(options, problems);
  if (entry.command == Command::tokenize) check_tokenize(flags, options, problems);
  if (entry.command == Command::export_) check_export(flags, options, problems);
  if (entry.command == Command::simulate) check_simulate(flags, options, problems);
  check_training(flags, options, problems);
}

}  // namespace hearth
