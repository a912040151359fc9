// How the adapters of a table stand in a PEFT directory: names, ranks, one scale, and the targets
// that select exactly them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "peft/adapter.h"

namespace hearth {

/// A pair of the file.
struct FilePair {
  size_t module = 0;        // of AdapterPlan::modules
  TensorId a = -1, b = -1;  // of the table; -1: an expert without a pair, zeros
  int64_t rank = 0;         // of the table's pair
  int64_t file_rank = 0;
  double factor = 1;  // of B: the pair's scale by the file's
};

struct AdapterPlan {
  std::vector<AdapterModule> modules;
  std::vector<FilePair> pairs;  // in the order of the modules
  int64_t rank = 0;             // of the file: that of the experts if there are any
  double scale = 0;
  std::set<std::string> target_modules, target_parameters;
  std::map<std::string, int64_t> ranks;  // rank_pattern
  std::vector<TensorId> whole;           // trained tensors of the model, and what is beside them
  std::set<std::string> saved_modules;   // modules_to_save: theirs

  /// Usage errors as require_storable.
  AdapterPlan(const ParameterTable& table, const Family& family, AdapterLayout layout);
  /// adapter_config.json without the base's name.
  Json config() const;

 private:
  void add_pairs(const ParameterTable& table);
  void add_whole(const ParameterTable& table);
  void set_sizes();
  void choose_targets(bool moved, AdapterLayout layout);
  void target_experts(const std::vector<bool>& adapted, bool moved, AdapterLayout layout);
};

/// Usage error naming the first tensor that is trained and that a PEFT directory cannot hold: of an
/// expert, of a module that has a pair, too, or an embedding that is the head. For before a run.
void require_storable(const ParameterTable& table, const Family& family);

}  // namespace hearth
