// Where the user gave the value that an error is about.
#pragma once

#include "base/error.h"
#include "commands/command_line.h"

namespace hearth {

/// Errors of the lower rooms begin with the option ("--lora-targets 'x': ...") or with the path that
/// was its value ("chats.jsonl: cannot open"). Returns the error with the place in front, if `line`
/// has it: "run.yaml:3: lora_target 'x': ..." for a key of a file, "--lora_target 'x': ..." for a flag
/// as it was written. Other errors are returned as they are.
Error error_at_place(const CommandLine& line, const Error& error);

}  // namespace hearth
