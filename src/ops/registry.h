// The registry of op sets; tests run one definition on all of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ops/op_set.h"

namespace hearth {

/// The registered op sets, in the order of registration.
const std::vector<const OpSet*>& op_sets();
void register_op_set(const OpSet& ops);
/// By name ("reference", "cpu"). Usage error that lists the known names.
const OpSet& find_op_set(std::string_view name);

}  // namespace hearth
