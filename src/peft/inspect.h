// The data that `inspect` shows of an adapter directory, without its base.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/json.h"

namespace hearth {

/// Stored tensors of one group of the model, named like trained_groups; "other" if the name matches
/// no group.
struct AdapterGroup {
  std::string name;
  int64_t tensors = 0;
  int64_t parameters = 0;
  int64_t bytes = 0;
  std::string types;  // "F32" or "BF16, F32"
};

struct AdapterInspection {
  int64_t rank = 0;  // from adapter_config.json, without its patterns
  double alpha = 0, scale = 0;
  bool rslora = false;
  std::string layout;  // of experts: "per-expert", "fused" or "none"
  std::string base_name;
  std::optional<Digest> base_digest;  // if this program wrote the file
  /// As in adapter_config.json: a list, a pattern or null.
  Json target_modules, target_parameters, modules_to_save, rank_pattern, alpha_pattern;
  int64_t without_pair = 0;  // matrices whose pair is padding zeros in the file
  AdapterGroup all;
  std::vector<AdapterGroup> groups;
};

/// Checks settings and headers; reads no tensor. Input errors as in check_adapter.
AdapterInspection inspect_adapter(const std::string& directory, bool follow_links = false);

/// For people: settings, and a table with one line per group.
std::string inspection_text(const AdapterInspection& inspection);
Json inspection_json(const AdapterInspection& inspection);

}  // namespace hearth
