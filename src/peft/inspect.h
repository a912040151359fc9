// What `inspect` shows of an adapter directory, without its base.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/json.h"

namespace hearth {

/// Stored tensors of one part of the model, as trained_groups names them; "other" where the name
/// does not tell.
struct AdapterGroup {
  std::string name;
  int64_t tensors = 0;
  int64_t parameters = 0;
  int64_t bytes = 0;
  std::string types;  // "F32" or "BF16, F32"
};

struct AdapterInspection {
  int64_t rank = 0;  // these of adapter_config.json, without its patterns
  double alpha = 0, scale = 0;
  bool rslora = false;
  std::string layout;  // of experts: "per-expert", "fused" or "none"
  std::string base_name;
  std::optional<Digest> base_digest;  // what this program notes
  /// As the settings have them: a list, a pattern or null.
  Json target_modules, target_parameters, modules_to_save, rank_pattern, alpha_pattern;
  int64_t without_pair = 0;  // matrices that are zeros in the file alone
  AdapterGroup all;
  std::vector<AdapterGroup> groups;
};

/// Settings and headers are checked, no tensor is read. Input errors as check_adapter.
AdapterInspection inspect_adapter(const std::string& directory, bool follow_links = false);

/// For people: settings, and a table with a line a group.
std::string inspection_text(const AdapterInspection& inspection);
Json inspection_json(const AdapterInspection& inspection);

}  // namespace hearth
