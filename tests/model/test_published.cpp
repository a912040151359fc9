// Published configurations: read as they are, and their parameters counted.
#include "model_fixtures.h"
#include "support/published_configs.h"

using namespace hearth;
using namespace hearth::test;

TEST_CASE("published models have the parameters that their cards say", "[config]") {
  for (const PublishedModel& model : {kQwen3Moe30B, kOlmoe7B, kMixtral8x7B, kQwen2Moe14B}) {
    INFO(model.name);
    const Json config = parse_json(model.config, model.name);
    const Family& family = family_of(config, model.name);
    const ModelSpec spec = family.read_config(config, model.name);
    const ParameterTable table = family.make_table(spec);
    int64_t parameters = 0;
    for (const Tensor& tensor : table.tensors()) parameters += tensor.size();
    CHECK(parameters == model.parameters);
    CHECK(family.tensor_count(spec) == static_cast<int64_t>(table.tensors().size()));
  }
}
