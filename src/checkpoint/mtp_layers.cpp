#include "checkpoint/mtp_layers.h"

#include <charconv>
#include <string_view>

#include "model/config_reader.h"

namespace hearth {

bool is_of_mtp_layer(const std::string& tensor, const Json& config, const std::string& source,
                     const ModelSpec& spec, const std::function<bool(const std::string&)>& stored) {
  constexpr std::string_view kLayers = "model.layers.";
  constexpr int64_t kMostLayers = 1 << 12;
  if (!tensor.starts_with(kLayers)) return false;
  const char* begin = tensor.data() + kLayers.size();
  const char* end = tensor.data() + tensor.size();
  int32_t layer = 0;
  const auto [at, error] = std::from_chars(begin, end, layer);
  if (error != std::errc{} || at == end || *at != '.' || layer < spec.layers) return false;
  const int64_t announced =
      ConfigReader(config, source).integer("num_nextn_predict_layers", 0, kMostLayers, 0);
  return layer < spec.layers + announced ||
         stored(tensor.substr(0, static_cast<size_t>(at - tensor.data())) + ".eh_proj.weight");
}

}  // namespace hearth
