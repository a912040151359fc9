// A diagnosis as JSON (docs/doctor.md).
#pragma once

#include "base/json.h"
#include "doctor/diagnosis.h"

namespace hearth {

/// The document of `hearth doctor` with JSON output. What a file about another machine does not
/// tell is null, and its links are an empty list.
Json diagnosis_json(const Diagnosis& diagnosis);

}  // namespace hearth
