// Checks of several options together: missing options and contradictions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "commands/given.h"
#include "commands/option_place.h"
#include "options/command_table.h"

namespace hearth {

/// Adds a problem if options of one place contradict each other.
void check_contradictions(const std::vector<Given>& given, const Options& options,
                          Problems& problems);

/// Checks the resolved options, and sets options that follow from others. `places`: where each option
/// was given last, for the problems.
void check_together(const CommandEntry& entry, const std::vector<Given>& flags,
                    const OptionPlaces& places, Options& options, Problems& problems);

/// The problem of a study that `hearth simulate` does not have: then its options mean nothing.
std::optional<std::string> study_problem(const Options& options);

/// The problem of an --out of export that lies in --model, --adapter or --from-state; else empty.
std::string out_in_input(const Options& options);

/// Input or usage error for data paths that name no file: see find_data_files.
void check_data_paths(Command command, const Options& options);

}  // namespace hearth
