// adapter_config.json of a PEFT directory: the modules that it selects, their ranks and scales.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "peft/modules.h"
#include "peft/rules.h"

namespace hearth {

/// The naming of an adapter's tensors. The same settings select different modules under each.
enum class AdapterNames : uint8_t { transformers_4, transformers_5 };

class AdapterConfig {
 public:
  /// Every setting is applied exactly or refused with an input error that names `source` and the
  /// setting. Refused: methods other than LoRA, variants of LoRA (use_dora, ...), settings that
  /// change the base (biases, initialisations such as pissa), and settings that PEFT 0.21 does not
  /// have.
  AdapterConfig(const Json& json, const std::string& source);

  /// For each module, whether it gets a pair. `moved`: PEFT rewrites targets that use the published
  /// names (peft_moves_targets).
  std::vector<bool> selected(const std::vector<AdapterModule>& modules, AdapterNames names,
                             bool moved) const;
  /// Rank and scale of a module's pair. For an expert in a fused parameter: of the parameter's
  /// pair.
  struct Size {
    double rank = 0;
    double scale = 0;
  };
  Size size_of(const AdapterModule& module, AdapterNames names, bool fused) const;

  /// Whether fused pairs have PEFT's packing since 0.19.1. True if the noted version is new enough
  /// and no other program left its mark.
  bool packs_as_peft() const;
  /// Whether the file stores a module whole (modules_to_save), by its name in transformers 5. Such
  /// a module gets no pair.
  bool saves(std::string_view module) const;
  std::set<std::string> saved() const;
  /// Whether A of a module's pair may have `rows` rows, as far as this is known without the base.
  bool may_have_rank(std::string_view module, int64_t rows) const;
  /// Most patterns to try per module.
  size_t patterns() const { return ranks_.size() + alphas_.size(); }
  // The defaults, without the patterns.
  int64_t rank() const { return rank_; }
  double alpha() const { return alpha_; }
  bool rslora() const { return rslora_; }
  const std::string& base_model() const { return base_model_; }
  const std::string& source() const { return source_; }

 private:
  struct Rules {
    NameRule modules, parameters;
    bool all_linear = false;
  };
  bool takes(const Rules& rules, const AdapterModule& module, const std::string& name) const;
  bool matches_5(const AdapterModule& module) const;
  Rules moved_rules(const std::vector<AdapterModule>& modules) const;
  bool selects_4(const AdapterModule& module) const;
  bool selects_5(const Rules& rules, const AdapterModule& module) const;

  std::string source_, base_model_, version_;
  bool other_program_ = false;
  int64_t rank_ = 0;
  double alpha_ = 0;
  bool rslora_ = false;
  Rules rules_;
  NameRule excluded_, saved_;
  std::optional<std::vector<int64_t>> layers_;  // layers_to_transform
  ValuePattern ranks_, alphas_;
};

}  // namespace hearth
