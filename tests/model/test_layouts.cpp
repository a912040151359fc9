// Experts stored one by one and fused: the same weights, told apart by names alone; results in the
// layout of the base.
#include "checkpoint/checkpoint_write.h"
#include "checkpoint/description.h"
#include "checkpoint/inspect.h"
#include "layout_fixture.h"

using namespace hearth;
using namespace hearth::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

void check_equal_weights(const ParameterTable& a, const ParameterTable& b) {
  REQUIRE(a.tensors().size() == b.tensors().size());
  for (TensorId id = 0; id < static_cast<TensorId>(a.tensors().size()); ++id) {
    const ConstView x = a.weight(id), y = b.weight(id);
    INFO(a.tensor(id).name);
    CHECK(a.tensor(id).name == b.tensor(id).name);
    CHECK(a.tensor(id).stored == b.tensor(id).stored);
    REQUIRE((x.dtype == y.dtype && x.rows == y.rows && x.cols == y.cols));
    CHECK(std::memcmp(x.data, y.data, x.bytes()) == 0);
  }
}

Inspection inspected(const std::string& directory) {
  const Checkpoint checkpoint(directory);
  return inspect_checkpoint(checkpoint, checkpoint.make_table());
}

}  // namespace

TEST_CASE("layouts: fused and one by one hold the same weights", "[layouts]") {
  const TemporaryDirectory directory;
  const Json configs[] = {
      small_config(), changed(small_config(), "moe_intermediate_size", 3),  // 2I = H
      // 2I = H = E: every dimension the same
      changed(changed(small_config(), "moe_intermediate_size", 3), "num_experts", 6),
      changed(changed(small_config(), "num_experts", 1), "num_experts_per_tok", 1),
      changed(small_config(), "mlp_only_layers", JsonArray{0, 1, 2}),  // no experts at all
  };
  int n = 0;
  for (const Json& config : configs) {
    for (const char* type : {"float32", "bfloat16", "float16"}) {
      const std::string model = directory / ("m" + std::to_string(n++));
      const std::string fused = make_twins(changed(config, "torch_dtype", type), model);
      INFO(config.dump() << " " << type);
      const Checkpoint a(model), b(fused);
      CHECK(a.layout().experts() == ExpertLayout::per_expert);
      const bool has_experts = b.spec().moe_layers() > 0;
      CHECK(b.layout().experts() == (has_experts ? ExpertLayout::fused : ExpertLayout::per_expert));
      check_equal_weights(read(a).table, read(b).table);
      check_equal_weights(read(a, false).table, read(b, false).table);
      b.check_finite();
      shard(fused, 3);
      check_equal_weights(read(a).table, read(Checkpoint(fused)).table);
    }
  }
}

TEST_CASE("layouts: layers may differ", "[layouts]") {
  const TemporaryDirectory directory;
  const std::string model = directory / "m", mixed = directory / "mixed";
  make_checkpoint(small_config(), model);
  fs::copy(model, mixed);
  edit(mixed, [](auto& tensors) { fuse(tensors, first_layer); });
  const Checkpoint checkpoint(mixed);
  CHECK(checkpoint.layout().experts() == ExpertLayout::mixed);
  check_equal_weights(read(Checkpoint(model)).table, read(checkpoint).table);
  const PublishedTensor* fused = checkpoint.layout().find(kGateUp);
  REQUIRE(fused != nullptr);
  CHECK(fused->shape == std::vector<int64_t>{3, 10, 6});
  CHECK(fused->parts.size() == 6);
  CHECK(checkpoint.layout().find("model.layers.0.mlp.experts.0.gate_proj.weight") == nullptr);
  CHECK(checkpoint.layout().find("model.layers.1.mlp.experts.0.gate_proj.weight") != nullptr);
  write_checkpoint(read(checkpoint).table, checkpoint, directory / "result");
  CHECK(read_text(directory / "result/model.safetensors") ==
        read_text(mixed + "/model.safetensors"));
}

TEST_CASE("layouts: results are in the layout of the base", "[layouts]") {
  const TemporaryDirectory directory;
  for (const char* type : {"float32", "bfloat16", "float16"}) {
    for (const bool sharded : {false, true}) {
      const std::string name = std::string(type) + (sharded ? "-shards" : "");
      INFO(name);
      const std::string fused =
          make_twins(changed(small_config(), "torch_dtype", type), directory / name);
      if (sharded) shard(fused, 4);
      const Checkpoint base(fused);
      const std::string result = directory / (name + "-result");
      write_checkpoint(read(base).table, base, result);
      for (const std::string& file : list_directory(fused)) {
        CHECK(read_text(result + "/" + file) == read_text(fused + "/" + file));
      }
      CHECK(digest_checkpoint(Checkpoint(result)).root == digest_checkpoint(base).root);
    }
  }
}

TEST_CASE("layouts: a changed weight changes its own bytes alone", "[layouts]") {
  const TemporaryDirectory directory;
  const std::string fused = make_twins(small_config(), directory / "m");
  const Checkpoint base(fused);
  // Expert 2 of 3, row 4 of 5, column 1 of 6.
  const auto changed_at = [&](const std::string& tensor, const char* published, int64_t element) {
    OwnedTable owned = read(base);
    const View view = owned.table.view(
        *owned.table.find("model.layers.0.mlp.experts.2." + tensor + ".weight"), CopyRole::master);
    view.row<float>(4)[1] = 0.125f;
    fs::remove_all(directory / "result");
    write_checkpoint(owned.table, base, directory / "result");
    const auto before = load(fused + "/model.safetensors");
    const auto after = load(directory / "result/model.safetensors");
    for (size_t i = 0; i < before.size(); ++i) {
      const auto& [entry, data] = after[i];
      for (size_t at = 0; at < data.size(); at += 4) {
        if (data.compare(at, 4, before[i].data, at, 4) == 0) continue;
        CHECK(entry.name == published);
        CHECK(static_cast<int64_t>(at / 4) == element);
      }
    }
    CHECK(digest_checkpoint(Checkpoint(directory / "result")).root != digest_checkpoint(base).root);
  };
  changed_at("gate_proj", kGateUp, (2 * 10 + 4) * 6 + 1);
  changed_at("up_proj", kGateUp, (2 * 10 + 5 + 4) * 6 + 1);
  changed_at("down_proj", kDown, (2 * 6 + 4) * 5 + 1);
}

TEST_CASE("layouts: stored types may differ between the fused tensors", "[layouts]") {
  const TemporaryDirectory directory;
  const std::string fused = make_twins(small_config(), directory / "m");
  edit(fused, [](auto& tensors) {
    StoredTensor& down = named(tensors, kDown);
    std::string rounded(down.data.size() / 2, '\0');
    convert(DType::f32, down.data.data(), DType::f16, rounded.data(),
            static_cast<int64_t>(down.data.size() / 4));
    down.entry.dtype = "F16";
    down.data = rounded;
  });
  const Checkpoint base(fused);
  OwnedTable owned = read(base);
  const auto tensor = [&](const char* last) -> const Tensor& {
    return owned.table.tensor(
        *owned.table.find(std::string("model.layers.0.mlp.experts.1.") + last + ".weight"));
  };
  CHECK(tensor("up_proj").stored == DType::f32);
  CHECK(tensor("down_proj").stored == DType::f16);
  write_checkpoint(owned.table, base, directory / "result");
  CHECK(read_text(directory / "result/model.safetensors") ==
        read_text(fused + "/model.safetensors"));

  const TensorId down = *owned.table.find("model.layers.0.mlp.experts.1.down_proj.weight");
  owned.table.view(down, CopyRole::master).as<float>()[2] = 70000.0f;
  const std::string message = error_of(
      [&] { write_checkpoint(owned.table, base, directory / "overflow"); }, ExitCode::numeric);
  CHECK_THAT(message, ContainsSubstring("tensor '" + std::string(kDown) + "': element 32 is not"));
}

TEST_CASE("layouts: inspection counts and names stored tensors", "[layouts]") {
  const TemporaryDirectory directory;
  const std::string model = directory / "m", fused = make_twins(small_config(), model);
  const Inspection a = inspected(model);
  const Inspection b = inspected(fused);
  CHECK(a.parameters == b.parameters);
  CHECK(a.active_parameters == b.active_parameters);
  CHECK(a.bytes == b.bytes);
  const auto experts = [](const Inspection& inspection) {
    for (const ParameterGroup& group : inspection.groups) {
      if (group.name == "expert") return group;
    }
    return ParameterGroup{};
  };
  CHECK(experts(a).tensors == 18);
  CHECK(experts(b).tensors == 4);
  CHECK(experts(a).blocks == experts(b).blocks);
  CHECK(experts(a).parameters == experts(b).parameters);

  const ContentDigest digest = digest_checkpoint(Checkpoint(fused));
  const auto has = [&](const char* name) {
    return std::any_of(digest.tensors.begin(), digest.tensors.end(),
                       [&](const auto& item) { return item.first == name; });
  };
  CHECK(has(kGateUp));
  CHECK(has(kDown));
  CHECK_FALSE(has("model.layers.0.mlp.experts.0.gate_proj.weight"));
}

TEST_CASE("layouts: block_sparse_moe may be called mlp", "[layouts]") {
  ParameterTable table;
  table.add_block(BlockKind::router, 0);
  const std::string part = "model.layers.0.block_sparse_moe.";
  table.add_tensor(part + "gate.weight", Slot::router, 2, 6, false);
  for (int e = 0; e < 2; ++e) {
    table.add_block(BlockKind::expert, 0, e);
    const std::string expert = part + "experts." + std::to_string(e);
    table.add_tensor(expert + ".w1.weight", Slot::gate, 5, 6, false);
    table.add_tensor(expert + ".w3.weight", Slot::up, 5, 6, false);
    table.add_tensor(expert + ".w2.weight", Slot::down, 6, 5, false);
  }
  const auto layout = [&](const std::vector<std::string>& stored) {
    const PublishedLayout::Stored has = [&](const std::string& name) {
      return std::find(stored.begin(), stored.end(), name) != stored.end();
    };
    return PublishedLayout(table, find_family("qwen3_moe"), has, "test");
  };
  const std::string gate = "model.layers.0.mlp.gate.weight";
  // As transformers saves it fused, and with the parts' names mixed.
  for (const std::string& router : {gate, part + "gate.weight"}) {
    const PublishedLayout fused = layout({router, kGateUp, kDown});
    REQUIRE(fused.tensors().size() == 3);
    CHECK(fused.tensors()[0].name == router);
    CHECK(fused.tensors()[1].name == kGateUp);
    CHECK(fused.tensors()[1].parts == std::vector<TensorId>{1, 2, 4, 5});
    CHECK(fused.tensors()[2].name == kDown);
    CHECK(fused.tensors()[2].parts == std::vector<TensorId>{3, 6});
  }
  CHECK(layout({part + "experts.down_proj"}).tensors()[1].name == part + "experts.gate_up_proj");
  CHECK(layout({gate, kDown}).find(kGateUp) != nullptr);  // a missing one, named as the other
  const std::string w3 = "model.layers.0.mlp.experts.1.w3.weight";
  CHECK(layout({gate, w3}).find(w3) != nullptr);
  CHECK(layout({}).find(part + "experts.1.w3.weight") != nullptr);
  CHECK_THAT(error_of([&] {
               layout({gate, part + "gate.weight"});
             }),
             ContainsSubstring("stored a second time as '" + gate + "'"));
  CHECK_THAT(error_of([&] {
               layout({part + "experts.1.w2.weight", kDown});
             }),
             ContainsSubstring("layer 0 has experts in two layouts"));
}

TEST_CASE("layouts: an index alone tells the layout", "[layouts]") {
  const TemporaryDirectory directory;
  const std::string model = directory / "m", fused = make_twins(small_config(), model);
  CHECK(describe_model(model, false).layout.experts() == ExpertLayout::per_expert);
  shard(fused, 4);
  for (const std::string& name : list_directory(fused)) {
    if (name.ends_with(".safetensors")) remove_file(fused + "/" + name);
  }
  const ModelDescription description = describe_model(fused, false);
  CHECK(description.layout.experts() == ExpertLayout::fused);
  CHECK(description.layout.find(kGateUp) != nullptr);
  CHECK(description.table.find("model.layers.0.mlp.experts.0.gate_proj.weight") != std::nullopt);
}
