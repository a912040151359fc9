// The families there are; model/family.cpp lists them.
#pragma once

#include "model/family.h"

namespace hearth {

const Family& qwen3_moe_family();

}  // namespace hearth
