// The pages of the program.
#pragma once

namespace hearth {

/// Maps the code and the constants of the program, so that the process takes nothing more when they are
/// used for the first time. Segments of more than 32 MiB are left out: code of GPUs is among them. Only
/// the first call does anything.
void map_program();

}  // namespace hearth
