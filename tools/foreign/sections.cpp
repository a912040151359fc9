#include "foreign/sections.h"

#include <algorithm>
#include <array>

namespace hearth {
namespace {

constexpr std::array kSections{"data", "training", "lora", "vision", "logging"};

bool is_section(const ConfigEntry& entry) {
  const bool named = std::find(kSections.begin(), kSections.end(), entry.key) != kSections.end();
  return named && entry.maps.size() == 1 && !entry.is_list && !entry.nested;
}

}  // namespace

std::vector<ConfigEntry> without_sections(std::vector<ConfigEntry> entries) {
  // `data` alone may be a data set of axolotl.
  const bool has_sections = std::any_of(entries.begin(), entries.end(), [](const ConfigEntry& e) {
    return is_section(e) && (e.key == "training" || e.key == "lora");
  });
  if (!has_sections) return entries;
  std::vector<ConfigEntry> flat;
  for (ConfigEntry& entry : entries) {
    if (is_section(entry)) {
      for (ConfigEntry& inner : entry.maps[0]) {
        inner.in_section = true;
        flat.push_back(std::move(inner));
      }
    } else {
      flat.push_back(std::move(entry));
    }
  }
  return flat;
}

}  // namespace hearth
