#include "device/cuda_code.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace hearth {
namespace {

struct Architecture {
  int version = 0;           // 89 is 8.9
  bool is_exact = false;     // machine code or PTX of one version ("90a")
  bool has_machine = true;   // code that runs as it is
  bool has_virtual = false;  // PTX
};

std::vector<Architecture> parse(std::string_view text) {
  std::vector<Architecture> all;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string_view item = text.substr(at, end - at);
    at = end + 1;
    Architecture one;
    const auto [rest, failed] =
        std::from_chars(item.data(), item.data() + item.size(), one.version);
    if (failed != std::errc{}) return {};  // "native" and its like say no number
    one.is_exact = rest != item.data() + item.size() && *rest != '-';
    one.has_machine = !item.ends_with("-virtual");
    one.has_virtual = !item.ends_with("-real");
    all.push_back(one);
  }
  return all;
}

bool runs(const Architecture& code, int version) {
  if (code.is_exact) return version == code.version;
  const bool same_major = version / 10 == code.version / 10;
  return version >= code.version && (code.has_virtual || (code.has_machine && same_major));
}

}  // namespace

std::string missing_cuda_code(std::string_view architectures, int major, int minor) {
  const std::vector<Architecture> all = parse(architectures);
  const int version = 10 * major + minor;
  if (all.empty() || std::any_of(all.begin(), all.end(),
                                 [&](const Architecture& code) { return runs(code, version); })) {
    return {};
  }
  return "its compute capability is " + std::to_string(major) + '.' + std::to_string(minor) +
         ", but this build has code for " + std::string(architectures) +
         "; build with -DHEARTH_CUDA_ARCHITECTURES=" + std::to_string(version);
}

}  // namespace hearth
