// What a task that is measured reads: whole numbers and f64 values that make sense. Floats may be
// any small numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "layers/body.h"

namespace hearth {

/// The content of a port of whole numbers or f64 for a micro-batch of `tokens` tokens in sequences
/// of `longest`. Token t chooses experts t k + j mod E, so experts get equal numbers of tokens.
/// Empty for ports of other types.
std::vector<std::byte> task_input(const Port& port, const ModelSpec& spec, int64_t tokens,
                                  int64_t longest);

/// The sequences of such a micro-batch.
int64_t sequences_of(int64_t tokens, int64_t longest);

}  // namespace hearth
