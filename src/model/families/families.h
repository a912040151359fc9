// All families; model/family.cpp lists them.
#pragma once

#include "model/family.h"

namespace hearth {

const Family& qwen3_moe_family();
const Family& olmoe_family();
const Family& mixtral_family();
const Family& qwen2_moe_family();

}  // namespace hearth
