// What identifies a run. The manifest of each saved state holds it (member "extra"). A resume
// compares it; every field has a rule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace hearth {

/// What a resume does if a field differs. "Refused" is a usage or an input error.
enum class IdentityRule : uint8_t {
  options,     // an option that changed is refused (usage) unless --allow-change names it
  fixed,       // refused (usage), even if --allow-change names the option that changed it
  resolved,    // refused (usage) unless --allow-change names the option that resolves to it
  owners,      // refused (usage) unless --allow-change names the option: its ranks decide the bits
  held_rows,   // refused (usage) unless --allow-change names the option; then a warning of a leak
  content,     // refused (input), naming the file, unless --allow-change let the option change
  kept_files,  // the same; files named both before and after the change must keep their content
  announced,   // may change: a warning says that results may differ in their bits
  recorded,    // not compared
};

/// What a resume does if a saved state does not have this field with this type.
enum class IdentityGap : uint8_t { not_compared, refused };

/// A field of RunIdentity: its name in the manifest, its rule, and the option that determines it.
template <class T>
struct IdentityField {
  const char* name;
  IdentityRule rule;
  const char* option = "";
  IdentityGap gap = IdentityGap::not_compared;
  std::optional<T> value = {};
  bool malformed = false;  // the saved state's member has another type

  IdentityField& operator=(T set) {
    value = std::move(set);
    return *this;
  }
};

/// The options of a run, each value as YAML on one line.
struct IdentityOption {
  std::string name;
  std::string value;        // empty in a saved state whose value is not text
  bool is_default = false;  // in this run: older versions without the option did the same
};
using IdentityOptions = std::vector<IdentityOption>;

/// A file with the digest of its content. Lists are in the order in which the run reads the files.
struct FileDigest {
  std::string file;
  std::string digest;
  friend bool operator==(const FileDigest&, const FileDigest&) = default;
};
using FileDigests = std::vector<FileDigest>;

/// A fact about the build or the machine: one text, or a list.
struct IdentityFact {
  std::string name;
  std::vector<std::string> items;
  bool is_list = false;
};
using IdentityFacts = std::vector<IdentityFact>;

/// The fields, in the order in which a resume checks them. To add one, declare it here with its
/// rule and name it in `each`.
struct RunIdentity {
  using Rule = IdentityRule;
  static constexpr IdentityGap kRefused = IdentityGap::refused;

  IdentityField<IdentityOptions> options{"options", Rule::options, "", kRefused};
  IdentityField<std::string> trained{"trained", Rule::fixed};  // digest of names and shapes
  IdentityField<std::string> compute_dtype{"compute_dtype", Rule::resolved, "compute-dtype"};
  IdentityField<std::string> owners{"owners", Rule::owners, "domains"};  // of experts
  IdentityField<std::string> val_rows{"val-rows", Rule::held_rows, "val-size"};
  IdentityField<FileDigests> chat_template{"chat-template", Rule::content, "chat-template"};
  IdentityField<FileDigests> model{"model", Rule::content, "model", kRefused};
  IdentityField<FileDigests> data{"data", Rule::kept_files, "data", kRefused};
  IdentityField<FileDigests> eval_data{"eval-data", Rule::kept_files, "eval-data", kRefused};
  IdentityField<FileDigests> adapter{"adapter", Rule::content, "adapter"};
  IdentityField<IdentityFacts> build{"build", Rule::announced};
  IdentityField<IdentityFacts> machine{"machine", Rule::announced};
  IdentityField<Json> lora{"lora", Rule::recorded};            // scales of the adapters
  IdentityField<Json> experts{"experts", Rule::recorded};      // experts that get adapters
  IdentityField<Json> templates{"templates", Rule::recorded};  // chat templates in the result
  IdentityField<Json> determinism{"determinism", Rule::recorded};

  /// Calls visit(field, ...) for each field of one identity, or for the same field of several.
  template <class Visit, class... Identities>
  static void each(const Visit& visit, Identities&... of) {
    visit(of.options...);
    visit(of.trained...);
    visit(of.compute_dtype...);
    visit(of.owners...);
    visit(of.val_rows...);
    visit(of.chat_template...);
    visit(of.model...);
    visit(of.data...);
    visit(of.eval_data...);
    visit(of.adapter...);
    visit(of.build...);
    visit(of.machine...);
    visit(of.lora...);
    visit(of.experts...);
    visit(of.templates...);
    visit(of.determinism...);
  }

  /// The value of an option; nullopt if it is absent or is not text.
  std::optional<std::string> option(std::string_view name) const;
};

/// The members of "extra" in the manifest: the fields that have a value.
Json to_json(const RunIdentity& identity);
/// The identity in a manifest. Never fails: a member of the wrong type yields no value.
RunIdentity identity_in(const Json& extra);

/// A change that was allowed.
struct IdentityChange {
  std::string text;
  /// Whether results stay bit-identical: another place, but none on a GPU, or another budget.
  bool keeps_bits = false;
};

/// Compares a saved state with this run by the rules of the fields. Raises usage and input errors.
/// Storage error, naming `source`, if a required field is missing. Returns the allowed changes.
std::vector<IdentityChange> compare(const RunIdentity& saved, const RunIdentity& now,
                                    const std::vector<std::string>& allow_change,
                                    const std::string& source);
/// Input error, naming the file, unless both have the same files with the same content.
void require_same_content(const IdentityField<FileDigests>& saved,
                          const IdentityField<FileDigests>& now, const std::string& advice);

}  // namespace hearth
