// Checks of an adapter directory that do not need its base.
#pragma once

#include <string>

#include "checkpoint/inspect.h"
#include "checkpoint/safetensors.h"

namespace hearth {

/// Whether a directory is a PEFT adapter, which means that it has adapter_config.json.
bool is_adapter(const std::string& directory);

/// Checks the header: names, types, that no pair is half, and that the ranks of a pair agree. Input
/// errors name file and tensor.
void check_adapter_names(const SafetensorsFile& file);

/// Checks settings, names, that no pair is half, that ranks agree with each other and with the
/// settings, that every value is finite, and the content digest if the file has one. Input errors
/// name file and setting or tensor. Returns the same as digest_adapter.
ContentDigest check_adapter(const std::string& directory, bool follow_links = false);

/// One digest per stored tensor and one over all, by the rule of digest_checkpoint.
ContentDigest digest_adapter(const std::string& directory, bool follow_links = false);

}  // namespace hearth
