// Back ends of the op set join here; tests run one definition on all of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ops/op_set.h"

namespace hearth {

/// The op sets of this build: what `register_op_set` was called with, in that order.
const std::vector<const OpSet*>& op_sets();
void register_op_set(const OpSet& ops);
/// By name ("reference", "cpu"); usage error naming the known ones.
const OpSet& find_op_set(std::string_view name);

}  // namespace hearth
