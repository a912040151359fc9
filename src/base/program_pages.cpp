#include "base/program_pages.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22  // Linux 5.14
#endif

namespace hearth {

namespace {

/// A read of each page.
void touch(const volatile char* begin, size_t bytes, size_t page) {
  for (size_t at = 0; at < bytes; at += page) static_cast<void>(begin[at]);
}

/// Of the first object, which is the program itself.
int map_segments(dl_phdr_info* object, size_t, void*) {
  constexpr size_t kMost = size_t{32} << 20;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    if ((segment.p_flags & PF_R) == 0 || segment.p_filesz > kMost) continue;
    const uintptr_t address = object->dlpi_addr + segment.p_vaddr, first = address / page * page;
    const size_t bytes = address + segment.p_filesz - first;
    auto* const begin = reinterpret_cast<char*>(first);  // NOLINT(performance-no-int-to-ptr)
    if (madvise(begin, bytes, MADV_POPULATE_READ) != 0) touch(begin, bytes, page);
  }
  return 1;
}

}  // namespace

void map_program() {
  static const int done = dl_iterate_phdr(map_segments, nullptr);
  static_cast<void>(done);
}

}  // namespace hearth
