#include <filesystem>

#include "checkpoint/inspect.h"
#include "checkpoint/inspect_report.h"
#include "model_fixtures.h"
#include "support/temporary_directory.h"

using namespace hearth;
using namespace hearth::test;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("inspect: sizes, groups and active parameters", "[inspect]") {
  const TemporaryDirectory directory;
  make_checkpoint(changed(small_config(), "torch_dtype", "bfloat16"), directory / "m");
  const Checkpoint checkpoint(directory / "m");
  ParameterTable table = checkpoint.make_table();
  for (Tensor& tensor : table.tensors()) tensor.trainable = tensor.slot != Slot::router;
  const Inspection inspection = inspect_checkpoint(checkpoint, table);
  int64_t parameters = 0;
  for (const ParameterGroup& group : inspection.groups) {
    parameters += group.parameters;
    CHECK(group.bytes == 2 * group.parameters);
    CHECK(group.types == "BF16");
  }
  const int64_t expert = 3 * 5 * 6;
  const int64_t attention = (16 + 8 + 8 + 16) * 6 + 2 * 6 + 2 * 4;
  const int64_t all = 2 * 11 * 6 + 6 + 3 * attention + 2 * 3 * 6 + 6 * expert + 3 * 7 * 6;
  CHECK(inspection.parameters == all);
  CHECK(parameters == all);
  CHECK(inspection.active_parameters == all - 2 * expert);  // two of three experts a token
  CHECK(inspection.bytes == 2 * all);
  REQUIRE(inspection.groups.size() == 6);
  CHECK(inspection.groups[3].name == "expert");
  CHECK(inspection.groups[3].blocks == 6);
  CHECK(inspection.groups[3].tensors == 18);

  // What is trained: all but the routers of the two layers with experts.
  CHECK(inspection.trained_parameters == all - 2 * 3 * 6);
  CHECK(inspection.groups[2].name == "router");
  CHECK(inspection.groups[2].trained == 0);
  CHECK(inspection.groups[3].trained == inspection.groups[3].parameters);

  const std::string text = inspection_text(inspection);
  CHECK_THAT(text, ContainsSubstring("model.layers.*.mlp.gate.weight") &&
                       ContainsSubstring("BF16  2  frozen\n"));
  CHECK_THAT(text, ContainsSubstring("qwen3_moe, " + std::to_string(all) + " parameters"));
  CHECK_THAT(text, ContainsSubstring("experts 3, 2 per token, width 5"));
  const Json json = inspection_json(inspection);
  CHECK(json.find("active_parameters")->as_int() == all - 2 * expert);
  CHECK(json.find("trained_parameters")->as_int() == all - 2 * 3 * 6);
  CHECK(json.find("sizes")->find("head_dim")->as_int() == 4);
  CHECK(json.find("groups")->as_array().size() == 6);
}

TEST_CASE("inspect: digests depend on content alone", "[inspect]") {
  const TemporaryDirectory directory;
  make_checkpoint(small_config(), directory / "a");
  std::filesystem::copy(directory / "a", directory / "b");
  shard(directory / "b", 4);
  make_checkpoint(small_config(), directory / "c", 8);
  const ContentDigest a = digest_checkpoint(Checkpoint(directory / "a"));
  const ContentDigest b = digest_checkpoint(Checkpoint(directory / "b"));
  const ContentDigest c = digest_checkpoint(Checkpoint(directory / "c"));
  CHECK(a.tensors == b.tensors);
  CHECK(a.root == b.root);
  CHECK(a.root != c.root);
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    CHECK(a.tensors[i].first == c.tensors[i].first);
    const bool norm = a.tensors[i].first.find("norm") != std::string::npos;
    CHECK((a.tensors[i].second == c.tensors[i].second) == norm);
    for (size_t k = 0; k < i; ++k) CHECK(a.tensors[i].second != a.tensors[k].second);
  }
  const Json json = digest_json(a);
  CHECK(json.find("root")->as_string() == a.root.hex());
  CHECK(json.find("digest")->find("model.norm.weight")->as_string().size() == 32);
  CHECK_THAT(digest_text(a), ContainsSubstring(a.root.hex() + "  root\n"));

  // Name, type and shape are content, too.
  const auto digest = [](const char* name, const char* type, std::vector<int64_t> shape) {
    return tensor_hasher(name, type, shape).digest();
  };
  CHECK(digest("a", "F32", {2, 3}) != digest("a", "F32", {3, 2}));
  CHECK(digest("a", "F32", {2}) != digest("a", "F32", {2, 1}));
  CHECK(digest("a", "F32", {2}) != digest("b", "F32", {2}));
  CHECK(digest("a", "F32", {2}) != digest("a", "I32", {2}));
}
