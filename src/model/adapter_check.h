// What can be said of an adapter directory without its base.
#pragma once

#include <string>

#include "model/inspect.h"
#include "model/safetensors.h"

namespace hearth {

/// Whether a directory is a PEFT adapter: has adapter_config.json.
bool is_adapter(const std::string& directory);

/// Checks the header: names and types, that every pair is whole and its ranks agree. Input errors
/// name file and tensor.
void check_adapter_names(const SafetensorsFile& file);

/// Checks settings, names, that every pair is whole and its ranks agree, and every value. Input
/// errors name file and setting or tensor.
void check_adapter(const std::string& directory, bool follow_links = false);

/// One digest a stored tensor and one over all, by the rule of digest_checkpoint.
ContentDigest digest_adapter(const std::string& directory, bool follow_links = false);

}  // namespace hearth
