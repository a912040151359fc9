#include "base/system.h"

#include <unistd.h>

#include <malloc.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>

namespace hearth {

namespace {

/// A field of /proc/self/status in kB, as bytes; 0 where it is missing.
uint64_t status_field(std::string_view field) {
  std::FILE* file = std::fopen("/proc/self/status", "re");
  if (file == nullptr) return 0;
  uint64_t kilobytes = 0;
  char line[256];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    std::string_view text(line);
    if (!text.starts_with(field)) continue;
    text.remove_prefix(text.find_first_of("0123456789"));
    std::from_chars(text.data(), text.data() + text.size(), kilobytes);
    break;
  }
  std::fclose(file);
  return kilobytes * 1024;
}

}  // namespace

std::string first_line_of_system_file(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return {};
  char line[1001] = "";
  if (std::fgets(line, sizeof line, file) == nullptr) line[0] = '\0';
  std::fclose(file);
  const std::string_view text(line);
  return std::string(text.substr(0, text.find('\n')));
}

uint64_t largest_cache_bytes() {
  constexpr uint64_t kUsual = uint64_t{32} << 20, kMost = uint64_t{64} << 20;
  uint64_t kib = 0;
  for (const char* index : {"2", "3"}) {
    const std::string size = first_line_of_system_file(
        std::string("/sys/devices/system/cpu/cpu0/cache/index") + index + "/size");  // "32768K"
    uint64_t of = 0;
    const auto read = std::from_chars(size.data(), size.data() + size.size(), of);
    if (read.ec == std::errc() && *read.ptr == 'K') kib = std::max(kib, of);
  }
  return kib > 0 ? std::min(kib << 10, kMost) : kUsual;
}

void limit_allocator() {
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_MMAP_THRESHOLD, 256 << 10);  // fixed: it does not grow with what was freed
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
}

void release_freed_memory() { malloc_trim(0); }

uint64_t resident_bytes() { return status_field("VmRSS:"); }
uint64_t resident_file_bytes() { return status_field("RssFile:"); }
uint64_t peak_resident_bytes() { return status_field("VmHWM:"); }

std::string own_host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

}  // namespace hearth
