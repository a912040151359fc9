// A diagnosis for people.
#pragma once

#include <string>

#include "doctor/diagnosis.h"

namespace hearth {

/// Lines of text; rates in GB/s, memory in GiB.
std::string diagnosis_text(const Diagnosis& diagnosis);

}  // namespace hearth
