#include "model/family.h"

#include "base/error.h"
#include "model/config_reader.h"
#include "model/families/families.h"

namespace hearth {

// transformers 5 calls the part of a layer that holds gate and experts "mlp" for all families, and
// saves fused experts below it; where a family publishes another name, it reads both.
std::string Family::other_name(const std::string& name) const {
  constexpr std::string_view kPart = ".block_sparse_moe.";
  const size_t at = name.find(kPart);
  return at == std::string::npos ? "" : std::string(name).replace(at, kPart.size(), ".mlp.");
}

const std::vector<const Family*>& families() {
  static const std::vector<const Family*> all = {&qwen3_moe_family(), &olmoe_family(),
                                                 &mixtral_family(), &qwen2_moe_family()};
  return all;
}

const Family& find_family(const std::string& model_type) {
  std::string known;
  for (const Family* family : families()) {
    if (family->model_type() == model_type) return *family;
    known += (known.empty() ? "" : ", ") + family->model_type();
  }
  throw input_error("model_type " + quoted(model_type) + " is not supported; supported are " +
                    known);
}

const Family& family_of(const Json& config, const std::string& source) {
  const std::string model_type = ConfigReader(config, source).text("model_type");
  try {
    return find_family(model_type);
  } catch (const Error& error) {
    throw input_error(source + ": " + error.what());
  }
}

std::optional<DType> config_dtype(const Json& config, const std::string& source) {
  const ConfigReader reader(config, source);
  const char* key = reader.find("dtype") != nullptr ? "dtype" : "torch_dtype";
  if (reader.find(key) == nullptr) return std::nullopt;
  std::string name = reader.text(key);
  if (name.starts_with("torch.")) name = name.substr(6);
  if (name == "float32") return DType::f32;
  if (name == "bfloat16") return DType::bf16;
  if (name == "float16") return DType::f16;
  reader.refuse(key, "expected float32, bfloat16 or float16");
}

}  // namespace hearth
