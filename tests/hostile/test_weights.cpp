// model.safetensors: everything the format forbids, and files that are something else.
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <filesystem>

#include "hostile/hostile.h"

using namespace hearth;
using namespace hearth::test;

namespace {

constexpr const char* kWeightsFile = "model/model.safetensors";
constexpr const char* kNorm = "model.norm.weight";

std::function<void(const Place&)> bytes(std::string text) {
  return [text = std::move(text)](const Place& place) { place.write(kWeightsFile, text); };
}

/// A file whose length field says `length`, whatever follows.
std::string with_length(uint64_t length, std::string_view rest) {
  std::string out = raw_safetensors("", rest);
  std::memcpy(out.data(), &length, 8);
  return out;
}

std::function<void(const Place&)> header(std::function<void(Json&)> change) {
  return [change = std::move(change)](const Place& place) { place.change_header(change); };
}

std::function<void(const Place&)> field(const char* name, Json value) {
  return header([=](Json& json) { json[kNorm][name] = value; });
}

/// The same text once more in the header, in place of another.
std::function<void(const Place&)> text_changed(std::string from, std::string to) {
  return [=](const Place& place) {
    const std::string file = place.read(kWeightsFile);
    uint64_t length = 0;
    std::memcpy(&length, file.data(), 8);
    std::string json = file.substr(8, length);
    json.replace(json.find(from), from.size(), to);
    place.write(kWeightsFile, raw_safetensors(json, file.substr(8 + length)));
  };
}

/// The value at an index of the final norm, as its stored bits.
std::function<void(const Place&)> weight(const char* dtype, std::string bits) {
  return [=](const Place& place) {
    std::string file = place.read(kWeightsFile);
    uint64_t length = 0;
    std::memcpy(&length, file.data(), 8);
    Json json = parse_json(std::string_view(file).substr(8, length), "header");
    std::string data;
    for (auto& [name, entry] : json.as_object()) {
      if (name == "__metadata__") continue;
      const auto& offsets = entry.find("data_offsets")->as_array();
      const uint64_t begin = offsets[0].as_uint();
      std::string part = file.substr(8 + length + begin, offsets[1].as_uint() - begin);
      if (name == kNorm) {
        part.assign(16 * bits.size(), '\0');
        part.replace(5 * bits.size(), bits.size(), bits);
        entry["dtype"] = dtype;
      }
      entry["data_offsets"] = JsonArray{uint64_t{data.size()}, uint64_t{data.size() + part.size()}};
      data += part;
    }
    place.write(kWeightsFile, raw_safetensors(json.dump(), data));
  };
}

std::string many_entries(size_t count) {
  std::string out = "{";
  for (size_t i = 0; i < count; ++i) {
    out += (i > 0 ? ",\"" : "\"") + std::to_string(i) +
           "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
  }
  return out + "}";
}

JsonArray offsets_of(const Json& json, const char* tensor) {
  return json.find(tensor)->find("data_offsets")->as_array();
}

}  // namespace

TEST_CASE("hostile: length fields and sizes of a weight file") {
  const std::string file = "model.safetensors";
  run_table(
      "weight file",
      {
          {"good", [](const Place&) {}, {}, 0},
          {"no bytes", bytes(""), {file}},
          {"seven bytes", bytes("\1\0\0\0\0\0\0"), {file}},
          {"length 0", bytes(with_length(0, "{}")), {file}},
          {"length 0 and nothing", bytes(with_length(0, "")), {file}},
          {"length of all but one", bytes(with_length(3, "{}")), {file, "length 3"}},
          {"length 2^63", bytes(with_length(uint64_t{1} << 63, "{}")), {file, "length"}},
          {"length 2^64-1", bytes(with_length(~uint64_t{0}, "{}")), {file, "length"}},
          {"length 2^64-5, which wraps", bytes(with_length(~uint64_t{4}, "{}")), {file, "length"}},
          {"length above the cap",
           [](const Place& p) {
             p.sparse(kWeightsFile, with_length(100'000'001, "{"), 200'000'000);
           },
           {file, "100000000"}},
          {"a length of the cap, holes behind it",
           [](const Place& p) {
             p.sparse(kWeightsFile, with_length(2'000'000, "{\"a"), 2'000'008);
           },
           {file}},
          {"two bytes short",
           [](const Place& p) {
             std::filesystem::resize_file(p.path(kWeightsFile),
                                          std::filesystem::file_size(p.path(kWeightsFile)) - 2);
           },
           {file, "past the end"}},
          {"half",
           [](const Place& p) {
             std::filesystem::resize_file(p.path(kWeightsFile),
                                          std::filesystem::file_size(p.path(kWeightsFile)) / 2);
           },
           {file}},
          {"one byte more",
           [](const Place& p) { p.write(kWeightsFile, p.read(kWeightsFile) + "x"); },
           {file}},
          {"another file behind it",
           [](const Place& p) {
             p.write(kWeightsFile, p.read(kWeightsFile) + p.read(kWeightsFile));
           },
           {file}},
          {"a header without its data",
           [](const Place& p) {
             p.change_header([](Json&) {});
             const std::string all = p.read(kWeightsFile);
             uint64_t length = 0;
             std::memcpy(&length, all.data(), 8);
             p.write(kWeightsFile, all.substr(0, 8 + length));
           },
           {file}},
          {"text", bytes("this is no safetensors file at all, it is text\n"), {file}},
          {"JSON without a length", bytes("{\"a\": 1}             "), {file}},
      },
      eval_words());
}

TEST_CASE("hostile: headers of a weight file") {
  const std::string file = "model.safetensors";
  run_table(
      "safetensors header",
      {
          {"white space behind it is legal", text_changed("}}", "}}  \n\t\r"), {}, 0},
          {"an empty tensor of an inverse frequency is legal",
           header([](Json& json) {
             json["model.layers.0.self_attn.rotary_emb.inv_freq"] =
                 parse_json(R"({"dtype": "F32", "shape": [0], "data_offsets": [0, 0]})", "entry");
           }),
           {},
           0},
          {"a lone brace", bytes(raw_safetensors("{", "")), {file}},
          {"an array", bytes(raw_safetensors("[]", "")), {file}},
          {"a string", bytes(raw_safetensors("\"a\"", "")), {file}},
          {"white space in front", bytes(raw_safetensors(" {}", "")), {file}},
          {"no UTF-8", bytes(raw_safetensors("{\"\xff\":1}", "")), {file, "UTF-8"}},
          {"a NUL byte", bytes(raw_safetensors(std::string("{\"a\0\":1}", 8), "")), {file}},
          {"no tensor", bytes(raw_safetensors("{}", "")), {"tensors"}},
          {"metadata alone",
           bytes(raw_safetensors("{\"__metadata__\":{\"format\":\"pt\"}}", "")),
           {"tensors"}},
          {"nested 100,000 deep",
           bytes(raw_safetensors(
               [] {
                 std::string deep;
                 for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
                 return deep;
               }(),
               "")),
           {file, "'a'"}},
          {"brackets 1,000,000 deep",
           bytes(raw_safetensors("{\"a\":{\"shape\":" + std::string(1'000'000, '['), "")),
           {file, "'a'"}},
          {"100,000 empty tensors", bytes(raw_safetensors(many_entries(100'000), "")), {"tensor"}},
          {"a tensor twice",
           text_changed("\"model.norm.weight\":",
                        "\"model.norm.weight\": {\"dtype\":\"F32\",\"shape\":[0],"
                        "\"data_offsets\":[0,0]},\"model.norm.weight\":"),
           {file, kNorm, "twice"}},
          {"a tensor twice, spelt with an escape",
           text_changed("\"model.norm.weight\":",
                        "\"\\u006dodel.norm.weight\": {\"dtype\":\"F32\",\"shape\":[0],"
                        "\"data_offsets\":[0,0]},\"model.norm.weight\":"),
           {file, kNorm, "twice"}},
          {"a field twice",
           text_changed("\"dtype\":", "\"dtype\": \"F32\", \"dtype\":"),
           {file, "twice"}},
          {"metadata twice",
           text_changed("{", "{\"__metadata__\":{},\"__metadata__\":{},"),
           {file, "twice"}},
          {"metadata of numbers",
           header([](Json& j) { j["__metadata__"]["n"] = 1; }),
           {file, "__metadata__"}},
          {"metadata that is a list",
           header([](Json& j) { j["__metadata__"] = JsonArray{}; }),
           {file}},
          {"an unknown field", field("strides", JsonArray{1}), {file, "strides", kNorm}},
          {"no offsets",
           header([](Json& json) {
             auto& members = json[kNorm].as_object();
             std::erase_if(members, [](const auto& m) { return m.first == "data_offsets"; });
           }),
           {file, kNorm}},
          {"an entry that is null", header([](Json& j) { j[kNorm] = nullptr; }), {file, kNorm}},
          {"an unknown type", field("dtype", "F33"), {file, kNorm, "F33"}},
          {"a type of no string", field("dtype", 32), {file, kNorm, "dtype"}},
          {"a type of 10,000 letters", field("dtype", std::string(10'000, 'F')), {file, kNorm}},
          {"a type that writes to the terminal", field("dtype", "\x1b[2J\x07"), {file, kNorm}},
          {"a shape that is negative", field("shape", JsonArray{-16}), {file, kNorm, "shape"}},
          {"a shape that is a float", field("shape", JsonArray{16.0}), {file, kNorm, "shape"}},
          {"a shape that is a string", field("shape", JsonArray{"16"}), {file, kNorm, "shape"}},
          {"a shape that is a number", field("shape", 16), {file, kNorm, "shape"}},
          {"a shape of 2^63", field("shape", JsonArray{uint64_t{1} << 63}), {file, kNorm}},
          {"a shape of 2^64",
           text_changed("\"shape\":[16]", "\"shape\":[18446744073709551616]"),
           {file, "shape"}},
          {"a shape with an exponent",
           text_changed("\"shape\":[16]", "\"shape\":[16e0]"),
           {file, "shape"}},
          {"a shape whose bytes overflow",
           field("shape", JsonArray{int64_t{1} << 62, int64_t{1} << 62}),
           {file, kNorm}},
          {"a shape whose bytes wrap to the right number",
           field("shape", JsonArray{int64_t{1} << 62, int64_t{4}, int64_t{4}}),
           {file, kNorm}},
          {"2 x (2^63-1)", field("shape", JsonArray{2, INT64_MAX}), {file, kNorm}},
          {"a shape of 65 dimensions", field("shape", JsonArray(65, Json(1))), {file, kNorm, "64"}},
          {"a shape of another size", field("shape", JsonArray{15}), {file, kNorm, "[15]"}},
          {"a shape of no element", field("shape", JsonArray{0}), {file, kNorm}},
          {"reversed offsets",
           header([](Json& json) {
             const JsonArray old = offsets_of(json, kNorm);
             json[kNorm]["data_offsets"] = JsonArray{old[1], old[0]};
           }),
           {file, kNorm, "reversed"}},
          {"offsets past the end",
           header([](Json& json) {
             json[kNorm]["data_offsets"] = JsonArray{uint64_t{1} << 40, (uint64_t{1} << 40) + 64};
           }),
           {file, kNorm, "past the end"}},
          {"offsets of 2^64-1",
           header([](Json& json) {
             json[kNorm]["data_offsets"] = JsonArray{~uint64_t{0} - 64, ~uint64_t{0}};
           }),
           {file, kNorm, "past the end"}},
          {"negative offsets", field("data_offsets", JsonArray{-64, 0}), {file, kNorm}},
          {"one offset", field("data_offsets", JsonArray{0}), {file, kNorm, "data_offsets"}},
          {"three offsets", field("data_offsets", JsonArray{0, 64, 128}), {file, kNorm}},
          {"offsets that are strings",
           field("data_offsets", JsonArray{"0", "64"}),
           {file, kNorm, "data_offsets", "string"}},
          {"an overlap",
           header([](Json& json) {
             const uint64_t begin = offsets_of(json, kNorm)[0].as_uint();
             const uint64_t to = begin >= 4 ? begin - 4 : begin + 4;
             json[kNorm]["data_offsets"] = JsonArray{to, to + 64};
           }),
           {file, "tensor"}},
          {"two tensors on one range",
           header([](Json& json) {
             json["model.layers.0.input_layernorm.weight"]["data_offsets"] =
                 offsets_of(json, kNorm);
           }),
           {file, "tensor"}},
          {"a hole",
           header([](Json& json) {
             auto& members = json.as_object();
             std::erase_if(members, [](const auto& m) { return m.first == kNorm; });
           }),
           {file}},
      },
      eval_words());
}

TEST_CASE("hostile: tensors that do not fit the model") {
  const std::string file = "model.safetensors";
  const auto add = [](std::string name) {
    return header([=](Json& json) {
      json[name] = parse_json(R"({"dtype": "F32", "shape": [0], "data_offsets": [0, 0]})", "entry");
    });
  };
  run_table(
      "tensors",
      {
          {"f16 weights", weight("F16", std::string("\x00\x3c", 2)), {}, 0},
          {"bf16 weights", weight("BF16", "\x80\x3f"), {}, 0},
          {"an unknown tensor", add("model.layers.0.surprise.weight"), {file, "surprise"}},
          {"an expert too many",
           add("model.layers.0.mlp.experts.4.up_proj.weight"),
           {file, "experts.4"}},
          {"a layer too many", add("model.layers.2.input_layernorm.weight"), {file, "layers.2"}},
          {"a name of 100,000 letters", add(std::string(100'000, 'n')), {file}},
          {"a name that writes to the terminal", add("\x1b]0;owned\x07\r\n"), {file}},
          {"a name with a NUL", add(std::string("a\0b", 3)), {file}},
          {"a missing tensor",
           [](const Place& p) {
             p.shard([](std::string&) {});
             const std::string shard = "model/model-00001-of-00002.safetensors";
             std::string file_bytes = p.read(shard);
             p.write("model/config.json", config_with("num_hidden_layers", "3"));
           },
           {"missing"}},
          {"a type that weights do not have",
           header([](Json& j) { j[kNorm]["dtype"] = "I32"; }),
           {file, kNorm, "I32"}},
          {"another shape than config.json's",
           [](const Place& p) {
             p.write("model/config.json", config_with("moe_intermediate_size", "4"));
           },
           {file, "shape"}},
          {"NaN in f32", weight("F32", std::string("\x00\x00\xc0\x7f", 4)), {file, kNorm, "5"}},
          {"infinity in f32",
           weight("F32", std::string("\x00\x00\x80\x7f", 4)),
           {file, kNorm, "5"}},
          {"minus infinity in f32",
           weight("F32", std::string("\x00\x00\x80\xff", 4)),
           {file, kNorm, "5"}},
          {"NaN in f16", weight("F16", std::string("\x01\x7c", 2)), {file, kNorm, "5"}},
          {"infinity in f16", weight("F16", std::string("\x00\x7c", 2)), {file, kNorm, "5"}},
          {"NaN in bf16", weight("BF16", std::string("\xc0\x7f", 2)), {file, kNorm, "5"}},
          {"infinity in bf16", weight("BF16", std::string("\x80\xff", 2)), {file, kNorm, "5"}},
      },
      eval_words());
}

TEST_CASE("hostile: weight files that are something else") {
  run_table("weight file, kind", not_a_file(kWeightsFile), eval_words());
  run_table("weight file, absent",
            {{"no weights", [](const Place& p) { p.remove(kWeightsFile); }, {"model.safetensors"}},
             {"pickles beside it",
              [](const Place& p) {
                p.remove(kWeightsFile);
                p.write("model/pytorch_model.bin", "x");
              },
              {"pytorch_model.bin", "pickle"}}},
            eval_words());
}
