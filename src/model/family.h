// A family turns config.json into a ModelSpec, and published tensor names into blocks. To add a
// family, write one file in src/model/families and one test.
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
  /// Reads every key that changes the mathematics, like transformers. Input error, naming key and
  /// value, for a setting that transformers honours and this program does not support. Keys that
  /// transformers ignores have no effect. No size, expert count or theta is guessed. Bounds every
  /// number, so that products of sizes fit in 63 bits: at most 2^50 parameters, and 2^18 experts
  /// over all layers.
  virtual ModelSpec read_config(const Json& config, const std::string& source) const = 0;
  /// The table of the published layout; all tensors f32, not trainable, no copies.
  virtual ParameterTable make_table(const ModelSpec& spec) const = 0;
  /// Whether a checkpoint may contain this tensor although the model does not use it.
  virtual bool ignores(const std::string& tensor) const = 0;
  /// The table tensor that a checkpoint may store again under this name (a tied head); empty if
  /// none.
  virtual std::string tied_source(const ModelSpec& spec, const std::string& tensor) const = 0;
  /// Another name that transformers accepts for a tensor of the table, or for fused experts
  /// (model/published_layout.h); empty if there is none.
  virtual std::string other_name(const std::string& name) const;
  /// How many tensors make_table would make, computed without taking memory.
  virtual int64_t tensor_count(const ModelSpec& spec) const = 0;
};

const std::vector<const Family*>& families();
/// By model_type. Input error that lists the known types.
const Family& find_family(const std::string& model_type);
/// By the key model_type of a config.json. Messages name `source`.
const Family& family_of(const Json& config, const std::string& source);

/// The storage type in a config.json (dtype, else torch_dtype, like transformers); nullopt if
/// absent.
std::optional<DType> config_dtype(const Json& config, const std::string& source);

}  // namespace hearth
