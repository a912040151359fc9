// What can be said of an adapter directory without its base.
#pragma once

#include <string>

#include "checkpoint/inspect.h"
#include "checkpoint/safetensors.h"

namespace hearth {

/// Whether a directory is a PEFT adapter: has adapter_config.json.
bool is_adapter(const std::string& directory);

/// Checks the header: names and types, that every pair is whole and its ranks agree. Input errors
/// name file and tensor.
void check_adapter_names(const SafetensorsFile& file);

/// Checks settings, names, that every pair is whole, that ranks agree with each other and with the
/// settings, that every value is finite, and the digest of all where the file notes one. Input errors
/// name file and setting or tensor. Gives what digest_adapter does.
ContentDigest check_adapter(const std::string& directory, bool follow_links = false);

/// One digest a stored tensor and one over all, by the rule of digest_checkpoint.
ContentDigest digest_adapter(const std::string& directory, bool follow_links = false);

}  // namespace hearth
