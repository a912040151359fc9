// What is refused of experts in either layout, by the names that are stored.
#include "checkpoint/inspect.h"
#include "layout_fixture.h"
#include "support/counted_memory.h"

using namespace hearth;
using namespace hearth::test;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("layouts: both in one layer are refused with their names", "[layouts]") {
  const TemporaryDirectory directory;
  const std::string model = directory / "m", fused = make_twins(small_config(), model);
  const std::vector<StoredTensor> other = load(fused + "/model.safetensors");
  const auto with = [&](const std::vector<std::string>& names) {
    return error_after(model, [&](auto& tensors) {
      for (const StoredTensor& tensor : other) {
        const auto& name = tensor.entry.name;
        if (std::find(names.begin(), names.end(), name) != names.end()) tensors.push_back(tensor);
      }
    });
  };
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{kGateUp, kDown}, {kGateUp}, {kDown}}) {
    const std::string message = with(names);
    CHECK_THAT(message, ContainsSubstring("layer 0 has experts in two layouts"));
    CHECK_THAT(message, ContainsSubstring("'" + names[0] + "'"));
    CHECK_THAT(message, ContainsSubstring("'model.layers.0.mlp.experts.0.gate_proj.weight'"));
  }
  // A dense layer has neither.
  CHECK_THAT(
      error_after(
          model,
          [](auto& tensors) {
            tensors.push_back({{"model.layers.2.mlp.experts.down_proj", "F32", {1}, 0, 0}, "abcd"});
          }),
      ContainsSubstring("unknown tensor 'model.layers.2.mlp.experts.down_proj'"));
  // Half of a layer in each layout.
  const std::string half = error_after(fused, [](auto& tensors) {
    std::erase_if(tensors, [](const auto& t) { return t.entry.name == kDown; });
    tensors.push_back({{"model.layers.0.mlp.experts.2.down_proj.weight", "F32", {6, 5}, 0, 0},
                       std::string(120, '\0')});
  });
  CHECK_THAT(half, ContainsSubstring("fused in '" + std::string(kGateUp) +
                                     "' and one by one in "
                                     "'model.layers.0.mlp.experts.2.down_proj.weight'"));
}

TEST_CASE("layouts: what is missing or misshapen is named as it would be stored", "[layouts]") {
  const TemporaryDirectory directory;
  for (const int width : {5, 3}) {  // with 3, 2I = H: the shapes of wrong orders are right ones
    INFO(width);
    const std::string fused = make_twins(changed(small_config(), "moe_intermediate_size", width),
                                         directory / ("m" + std::to_string(width)));
    for (const char* name : {kGateUp, kDown}) {
      const std::string message = error_after(fused, [&](auto& tensors) {
        std::erase_if(tensors, [&](const auto& t) { return t.entry.name == name; });
      });
      CHECK_THAT(message, ContainsSubstring("tensor '" + std::string(name) + "' of shape [3, "));
      CHECK_THAT(message, ContainsSubstring("is missing"));
    }
    const int64_t rows = 2 * width;
    const auto reshaped = [&](const char* name, const std::vector<int64_t>& shape) {
      return error_after(fused, [&](auto& tensors) { named(tensors, name).entry.shape = shape; });
    };
    const std::string asked = "config.json asks for [3, " + std::to_string(rows) + ", 6]";
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{3 * rows, 6}, {3, rows * 6}, {rows, 3, 6}, {3, rows, 6, 1}}) {
      CHECK_THAT(reshaped(kGateUp, shape), ContainsSubstring(asked));
    }
    CHECK(reshaped(kGateUp, {3, rows, 6}).empty());
    if (width == 5) {
      CHECK_THAT(reshaped(kGateUp, {3, 6, rows}), ContainsSubstring(asked));
      CHECK_THAT(reshaped(kDown, {3, 5, 6}), ContainsSubstring("asks for [3, 6, 5]"));
    }
    CHECK_THAT(error_after(fused,
                           [&](auto& tensors) {  // an expert fewer than config.json says
                             StoredTensor& down = named(tensors, kDown);
                             down.data.resize(down.data.size() / 3 * 2);
                             down.entry.shape[0] = 2;
                           }),
               ContainsSubstring("has shape [2, 6, " + std::to_string(width) + "]"));
    CHECK_THAT(
        error_after(fused, [&](auto& tensors) { named(tensors, kDown).entry.dtype = "I32"; }),
        ContainsSubstring("stored as I32"));
    CHECK_THAT(error_after(fused,
                           [&](auto& tensors) {
                             named(tensors, kGateUp).entry.name = std::string(kGateUp) + ".weight";
                           }),
               ContainsSubstring("'" + std::string(kGateUp) + "' of shape"));
  }
}

TEST_CASE("layouts: sizes that no data backs are refused without their memory", "[layouts]") {
  const TemporaryDirectory directory;
  const std::string model = directory / "m";
  const std::string fused = make_twins(small_config(), model);
  const Json many = changed(changed(small_config(), "num_experts", 16384), "num_hidden_layers", 16);
  write_text(fused + "/config.json", many.dump());
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{16384, 0, 0}, {int64_t{1} << 50, 0}, {0}, {}}) {
    edit(fused, [&](auto& tensors) {
      for (StoredTensor& tensor : tensors) {
        if (tensor.entry.name.find("experts") == std::string::npos) continue;
        tensor.entry.shape = shape;
        tensor.data.resize(shape.empty() ? 4 : 0);
      }
    });
    start_counting();
    CHECK_THAT(error_of([&] { Checkpoint checkpoint(fused); }),
               ContainsSubstring("config.json describes 737"));
    CHECK(counted_peak() < 2'000'000);
  }
}

TEST_CASE("layouts: a weight that is not finite is named in its stored tensor", "[layouts]") {
  const TemporaryDirectory directory;
  const std::string fused = make_twins(small_config(), directory / "m");
  for (const size_t index : {size_t{0}, size_t{29}, size_t{30}, size_t{100}, size_t{179}}) {
    const Change poison = [&](auto& tensors) {
      named(tensors, kGateUp).data.replace(index * 4, 4, std::string("\0\0\x80\x7f", 4));
    };
    const std::string expected = "tensor '" + std::string(kGateUp) + "': element " +
                                 std::to_string(index) + " is not finite";
    CHECK_THAT(error_after(fused, poison), ContainsSubstring(expected));
    CHECK_THAT(error_of([&] { Checkpoint(fused + "-copy").check_finite(); }),
               ContainsSubstring(expected));
  }
}

TEST_CASE("layouts: tensors of no layer may have any type of the format", "[layouts]") {
  const TemporaryDirectory directory;
  const std::string model = directory / "m";
  make_checkpoint(small_config(), model);
  edit(model, [](auto& tensors) {
    tensors.push_back({{"mtp.layers.0.mlp.experts.gate_up_proj", "F8_E4M3", {4}, 0, 0}, "abcd"});
    tensors.push_back(
        {{"model.rotary_emb.inv_freq", "F32", {1}, 0, 0}, std::string("\0\0\x80\x7f", 4)});
  });
  const Checkpoint checkpoint(model);
  checkpoint.check_finite();
  CHECK(digest_checkpoint(checkpoint).tensors.size() == checkpoint.layout().tensors().size() + 2);
}
