// The commands. Each is in its own file, cmd_<name>.cpp.
#pragma once

#include <string>

#include "base/error.h"
#include "commands/command_line.h"
#include "commands/console.h"
#include "train/launched_ranks.h"

namespace hearth {

/// Runs the command, or prints help or version. Raises Error. `launched`: of a command of several
/// processes, as one of them; else null.
ExitCode run_command(const CommandLine& line, LaunchedRanks* launched = nullptr);

ExitCode run_train(const Options& options, LaunchedRanks* launched);
ExitCode run_eval(const Options& options);
ExitCode run_generate(const Options& options);
ExitCode run_chat(const Options& options);
ExitCode run_plan_command(const Options& options, LaunchedRanks* launched);
ExitCode run_inspect(const Options& options);
ExitCode run_tokenize(const Options& options);
ExitCode run_export(const Options& options);
ExitCode run_verify(const Options& options);
ExitCode run_init(const Options& options);
ExitCode run_report(const Options& options);
ExitCode run_simulate(const Options& options);
ExitCode run_doctor(const Options& options, LaunchedRanks* launched);
ExitCode run_profile(const Options& options, LaunchedRanks* launched);
ExitCode run_migrate(const CommandLine& line);

/// The console settings for these options.
ConsoleSettings console_settings(const Options& options);

}  // namespace hearth
