// A diagnosis for people.
#pragma once

#include <string>

#include "doctor/diagnosis.h"

namespace hearth {

/// Lines of text; rates in GB/s, memory in GB.
std::string diagnosis_text(const Diagnosis& diagnosis);

}  // namespace hearth
