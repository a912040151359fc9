// How a PEFT directory represents the adapters of a table: names, ranks, one scale, and targets
// that select exactly these adapters.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "peft/adapter.h"

namespace hearth {

/// A pair in the file.
struct FilePair {
  size_t module = 0;        // index into AdapterPlan::modules
  TensorId a = -1, b = -1;  // of the table; -1: an expert without a pair, stored as zeros
  int64_t rank = 0;         // of the table's pair
  int64_t file_rank = 0;
  double factor = 1;  // of B: the pair's scale divided by the file's scale
};

struct AdapterPlan {
  std::vector<AdapterModule> modules;
  std::vector<FilePair> pairs;  // in the order of the modules
  int64_t rank = 0;             // of the file: the rank of the experts' pairs if there are any
  double scale = 0;
  std::set<std::string> target_modules, target_parameters;
  std::map<std::string, int64_t> ranks;  // rank_pattern
  std::vector<TensorId> whole;           // all tensors of modules with trained tensors
  std::set<std::string> saved_modules;   // modules_to_save: the modules of `whole`

  /// Usage errors as in require_storable.
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

/// Usage error, naming the first trained tensor that a PEFT directory cannot hold: a tensor of an
/// expert, a tensor of a module that also has a pair, or an embedding that is also the head. Call
/// before a run.
void require_storable(const ParameterTable& table, const Family& family);

}  // namespace hearth
