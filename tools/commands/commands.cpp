#include "commands/commands.h"

#include "base/log.h"
#include "checkpoint/hub_cache.h"
#include "commands/help.h"
#include "commands/option_checks.h"
#include "commands/output.h"
#include "commands/run_model.h"
#include "commands/version.h"
#include "cpu_kernels/cpu_info.h"
#include "cpu_kernels/cpu_ops.h"
#include "device/cuda_runtime.h"
#include "gpu_kernels/cuda_ops.h"
#include "setup/run_devices.h"

namespace hearth {

ConsoleSettings console_settings(const Options& options) {
  return console_settings(options.quiet, options.verbose, options.log_every);
}

/// Whether --model and --adapter may be a run directory. Beside --from-state, --model is a base.
static bool takes_run(Command command, const Options& options) {
  switch (command) {
    case Command::eval:
    case Command::generate:
    case Command::chat: return true;
    case Command::export_: return options.from_state.empty();
    default: return false;
  }
}

ExitCode run_command(const CommandLine& line, LaunchedRanks* launched) {
  if (line.action == CommandLine::Action::version) {
    print(version_text());
    return ExitCode::done;
  }
  if (line.action == CommandLine::Action::aliases) {
    print(aliases_help());
    return ExitCode::done;
  }
  if (line.action == CommandLine::Action::help) {
    print(line.command ? command_help(*line.command) : program_help());
    return ExitCode::done;
  }
  Options options = line.options;
  set_log_level(options.quiet     ? LogLevel::quiet
                : options.verbose ? LogLevel::verbose
                                  : LogLevel::normal);
  if (launched != nullptr && !launched->leads()) {  // rank 0 says what there is to say
    set_log_level(LogLevel::quiet);
    set_warning_sink([](const std::string&) {});
  }
  for (const std::string& note : line.notes) log_info(note);
  for (const std::string& detail : line.details) log_verbose(detail);
  if (*line.command == Command::migrate) return run_migrate(line);  // opens nothing
  if (!options.model.empty() || !options.adapter.empty()) {
    options.model_name = options.model;
    if (!options.model.empty()) options.model = find_model(options.model);
    if (takes_run(*line.command, options)) take_run(options);
    if (options.model != line.options.model) log_verbose("model: " + options.model);
  }
  check_data_paths(*line.command, options);
  if (*line.command == Command::inspect || *line.command == Command::verify) {
    options.operand = find_model(options.operand);
  }
  cpu_isa();  // a HEARTH_ISA that cannot be is refused before anything is done
  register_cpu_ops();
  register_cuda_ops();
  CudaBackEnd gpus{cuda_calls, "cuda", cuda_architectures()};
  gpus.planned = &planned_cuda_ops();
  set_cuda_back_end(gpus);
  switch (*line.command) {
    case Command::train: return run_train(options, launched);
    case Command::eval: return run_eval(options);
    case Command::generate: return run_generate(options);
    case Command::chat: return run_chat(options);
    case Command::plan: return run_plan_command(options, launched);
    case Command::inspect: return run_inspect(options);
    case Command::tokenize: return run_tokenize(options);
    case Command::export_: return run_export(options);
    case Command::verify: return run_verify(options);
    case Command::init: return run_init(options);
    case Command::report: return run_report(options);
    case Command::simulate: return run_simulate(options);
    case Command::doctor: return run_doctor(options, launched);
    case Command::profile: return run_profile(options, launched);
    case Command::migrate: break;
  }
  HEARTH_CHECK(false, "a command without a function");
}

}  // namespace hearth
