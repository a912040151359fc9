// A family: config.json to ModelSpec, published tensor names to blocks, in both directions.
// A new family is one file in src/model/families and one test.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "model/parameter_table.h"
#include "model/spec.h"

namespace hearth {

class Family {
 public:
  virtual ~Family() = default;
  virtual std::string model_type() const = 0;
  /// Reads every key that changes the mathematics; a switch that is neither honoured nor known to
  /// have no effect is an input error naming key and value. Nothing is guessed.
  virtual ModelSpec read_config(const Json& config, const std::string& source) const = 0;
  /// The table of the published layout; all tensors f32, not trainable, no copies.
  virtual ParameterTable make_table(const ModelSpec& spec) const = 0;
  /// Whether a tensor of a checkpoint may be there without being part of the model.
  virtual bool ignores(const std::string& tensor) const = 0;
};

const std::vector<const Family*>& families();
/// By model_type; input error naming the known ones.
const Family& find_family(const std::string& model_type);

}  // namespace hearth
