// What only the model shows of the adapter targets that a user gave.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "commands/command_line.h"

namespace hearth {

/// A line for each target that the model does not have, with the place where the user gave it. Empty if
/// no adapters are trained, or if the model cannot be described: then the command says why.
std::vector<std::string> target_problems(const CommandLine& line);

/// The lines of an error that ends a command: one, at its place (error_place.h); of a wrong target, those
/// of all wrong targets.
std::vector<std::string> lines_of_error(const CommandLine& line, const Error& error);

}  // namespace hearth
