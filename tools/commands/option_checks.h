// What no single option shows: missing ones, and those that contradict each other.
#pragma once

#include <vector>

#include "commands/given.h"
#include "options/command_table.h"

namespace hearth {

/// Options of one place that say different things.
void check_contradictions(const std::vector<Given>& given, const Options& options,
                          Problems& problems);

/// The options as they are resolved; also sets what follows from others.
void check_together(const CommandEntry& entry, const std::vector<Given>& flags, Options& options,
                    Problems& problems);

/// Input errors for data that no command could read, known by their names: a directory, several
/// files in one name.
void check_data_paths(Command command, const Options& options);

}  // namespace hearth
