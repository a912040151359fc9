#include "commands/option_checks.h"

#include <algorithm>

#include "base/error.h"
#include "base/numbers.h"
#include "base/paths.h"
#include "data/samples/data_files.h"

namespace hearth {
namespace {

const Given* find_given(const std::vector<Given>& given, const std::string& name) {
  const auto it = std::find_if(given.begin(), given.end(),
                               [&](const Given& g) { return g.option->name == name; });
  return it == given.end() ? nullptr : &*it;
}

bool is_missing(const std::string& name, const Options& options) {
  const std::string value = find_option(name)->value.get(options);
  return value == "null" || value == "[]";
}

/// Micro-batches that hold the tokens of --batch-tokens when they are full.
int64_t micro_batches_of(const Options& options) {
  const int64_t full = options.seq_len * options.micro_batch;
  return (*options.batch_tokens + full - 1) / full;
}

void check_generate(const std::vector<Given>& flags, const Options& options, Problems& problems) {
  const bool prompt = find_given(flags, "prompt"), messages = find_given(flags, "messages");
  if (prompt == messages) {
    problems.add(std::string("expected one of --prompt and --messages, found ") +
                 (prompt ? "both" : "neither"));
  }
  if (find_given(flags, "top-p") && options.temperature == 0) {
    problems.add("--top-p needs --temperature above 0: at 0 the likeliest token is taken");
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
    problems.add("expected a FILE or --data, found both: lines of a text have no trained tokens");
  }
  if (options.no_special) problems.add("--no-special does not go with --data");
}

void check_export(const std::vector<Given>& flags, Options& options, Problems& problems) {
  options.layout_given = find_given(flags, "adapter-layout") != nullptr;
  const auto inside = [](std::string path, std::string folder) {
    folder = without_trailing_slashes(std::move(folder));
    return path == folder || path.starts_with(folder == "/" ? folder : folder + "/");
  };
  if (options.adapter.empty() == options.from_state.empty()) {
    problems.add(std::string("expected one of --adapter and --from-state, found ") +
                 (options.adapter.empty() ? "neither" : "both"));
  } else if (!options.adapter.empty() && options.model.empty()) {
    problems.add("--adapter needs its base by --model");
  }
  for (const std::string& input : {options.from_state, options.model, options.adapter}) {
    if (!input.empty() && inside(options.out, input)) {
      problems.add("--out " + quoted(options.out) + ": lies in " + quoted(input) +
                   ", which is not changed; choose another directory");
    }
  }
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
  if (training || command == Command::eval) check(options.data, "--data", training);
  if (training) check(options.eval_data, "--eval-data", false);
  const auto reads_stdin = [](const std::vector<std::string>& files) {
    return std::any_of(files.begin(), files.end(), [](const std::string& file) {
      return file == "-" || file.starts_with("-:");
    });
  };
  if (training && reads_stdin(options.data) && reads_stdin(options.eval_data)) {
    problems.add("--data and --eval-data: standard input (-) can be read once only");
  }
}

void check_training(const std::vector<Given>& flags, Options& options, Problems& problems) {
  for (std::string& name : options.allow_change) {
    const Option* option = find_option(name);
    if (option && option->commands.contains(Command::train)) {
      name = option->name;
    } else {
      problems.add("--allow-change: " + quoted(name) + " is no option" +
                   suggestion(Command::train, name, ""));
    }
  }
  if (options.val_size > 0 && !options.eval_data.empty()) {
    problems.add("--val-size and --eval-data contradict each other: give one");
  }
  if ((options.eval_every || options.eval_at_start) && options.eval_data.empty() &&
      options.val_size == 0) {
    problems.add(std::string(options.eval_every ? "--eval-every" : "--eval-at-start") +
                 " needs --eval-data or --val-size");
  }
  // A flag beats the file's other way to say it.
  if (find_given(flags, "grad-accum") && !find_given(flags, "batch-tokens")) {
    options.batch_tokens.reset();
  }
  if (options.batch_tokens) {
    options.grad_accum = micro_batches_of(options);
    if (options.grad_accum > 1 << 20) {
      problems.add("--batch-tokens: " + std::to_string(options.grad_accum) +
                   " micro-batches a step, more than " + std::to_string(1 << 20));
    }
  }
}

// What would have no effect: a forgotten --method lora would train the whole model.
void check_lora(const Options& options, Problems& problems) {
  const bool lora = options.method == Method::lora;
  if (lora && options.adapter.empty()) return;
  const Options defaults;
  for (const Option& option : option_table()) {
    const std::string& name = option.name;
    const bool of_lora = option.group == "LoRA" && option.commands.contains(Command::train);
    if (!of_lora || name == "adapter" || name == "experts" ||
        option.value.get(options) == option.value.get(defaults)) {
      continue;
    }
    if (!lora) {
      problems.add("--" + name + " needs --method lora");
    } else if (name == "rslora" || name == "expert-r" || name.starts_with("lora-")) {
      if (name == "lora-dropout") continue;
      problems.add("--" + name +
                   " does not go with --adapter: ranks, scales and targets are those " +
                   "of the adapter");
    }
  }
}

}  // namespace

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

void check_together(const CommandEntry& entry, const std::vector<Given>& flags, Options& options,
                    Problems& problems) {
  for (const std::string& name : entry.required) {
    if (is_missing(name, options)) problems.add("--" + name + " is missing");
  }
  const bool compares = find_given(flags, "compare");
  if (compares && !options.operand.empty()) {
    problems.add("expected RUN_DIR or --compare RUN RUN, found both");
  }
  if (!entry.operand.empty() && entry.operand[0] != '[' && options.operand.empty() && !compares) {
    problems.add("expected a directory: hearth " + entry.name + " " + entry.operand);
  }
  if (options.quiet && options.verbose) {
    problems.add("--quiet and --verbose contradict each other: give one");
  }
  check_data(entry.command, options, problems);
  if (entry.command == Command::generate) check_generate(flags, options, problems);
  if (entry.command == Command::tokenize) check_tokenize(flags, options, problems);
  if (entry.command == Command::export_) check_export(flags, options, problems);
  if (entry.command == Command::train || entry.command == Command::plan) {
    check_lora(options, problems);
  }
  check_training(flags, options, problems);
}

}  // namespace hearth
