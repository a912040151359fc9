// Any text is either refused with an input error or read to entries that are written as YAML and
// read back equal.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "options/config_file.h"
#include "support/bounded.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    std::vector<hearth::ConfigEntry> entries;
    {
      const hearth::test::Bounded bound(size, {.times = 1024, .bytes = 4 << 20});
      entries = hearth::parse_config_yaml(text, "fuzz");
    }
    std::string again;
    for (const auto& entry : entries) {
      hearth::JsonArray values(entry.values.begin(), entry.values.end());
      again += hearth::Json(entry.key).dump() + ": " +
               (entry.is_null ? "null" : hearth::Json(values).dump()) + "\n";
    }
    const auto reread = hearth::parse_config_yaml(again, "again");
    if (reread.size() != entries.size()) std::abort();
    for (size_t i = 0; i < entries.size(); ++i) {
      if (reread[i].key != entries[i].key || reread[i].values != entries[i].values) std::abort();
    }
  } catch (const hearth::Error& error) {
    if (error.code() != hearth::ExitCode::input) std::abort();
  }
  return 0;
}
