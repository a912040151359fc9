// What `--policy auto` became in the run that is resumed.
#pragma once

#include <string>

#include "setup/config.h"

namespace hearth {

/// The name that the state has which the run would resume (ChosenPolicy::name); `static` of a state
/// of a version that knew nothing else. Empty: there is no state.
std::string saved_policy(const TrainConfig& config);

}  // namespace hearth
