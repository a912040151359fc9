// A family: config.json to ModelSpec, published tensor names to blocks, in both directions.
// A new family is one file in src/model/families and one test.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/json.h"
#include "model/parameter_table.h"
#include "model/spec.h"

namespace hearth {

class Family {
 public:
  virtual ~Family() = default;
  virtual std::string model_type() const = 0;
  /// Reads every key that changes the mathematics as transformers does; one that it honours and
  /// this program does not is an input error naming key and value. Keys that transformers ignores
  /// have no effect. No size, expert count or theta is ever guessed. Bounds every number, so that
  /// products of sizes fit in 63 bits: at most 2^50 parameters, 2^18 experts of all layers.
  virtual ModelSpec read_config(const Json& config, const std::string& source) const = 0;
  /// The table of the published layout; all tensors f32, not trainable, no copies.
  virtual ParameterTable make_table(const ModelSpec& spec) const = 0;
  /// Whether a tensor of a checkpoint may be there without being part of the model.
  virtual bool ignores(const std::string& tensor) const = 0;
  /// The tensor of the table that a checkpoint may store a second time under this name (a tied
  /// head), empty if there is none.
  virtual std::string tied_source(const ModelSpec& spec, const std::string& tensor) const = 0;
  /// Another name under which a checkpoint may store a tensor of the table, or its experts fused
  /// (model/published_layout.h), because transformers reads both; empty if there is none.
  virtual std::string other_name(const std::string& name) const;
  /// How many tensors make_table would make: known before it takes memory.
  virtual int64_t tensor_count(const ModelSpec& spec) const = 0;
};

const std::vector<const Family*>& families();
/// By model_type; input error naming the known ones.
const Family& find_family(const std::string& model_type);
/// By the key model_type of a config.json; `source` names it in messages.
const Family& family_of(const Json& config, const std::string& source);

/// The storage type that a config.json names (dtype, else torch_dtype, as transformers reads them),
/// nullopt if it names none.
std::optional<DType> config_dtype(const Json& config, const std::string& source);

}  // namespace hearth
