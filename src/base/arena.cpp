#include "base/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error_format.h"
#include "base/pool.h"
#include "base/setting.h"

namespace hearth {

Arena::Arena(std::string name, size_t bytes, std::shared_ptr<void> reservation)
    : name_(std::move(name)), size_(bytes), reservation_(std::move(reservation)) {
  if (bytes == 0) return;
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    throw storage_error("arena {}: the system has no {} bytes of memory; lower {}, {} or {}", name_,
                        bytes, spelled(Setting::cpu_memory), spelled(Setting::micro_batch),
                        spelled(Setting::seq_len));
  }
  data_ = static_cast<std::byte*>(address);
  mapped_ = true;
  madvise(address, bytes, MADV_HUGEPAGE);  // a hint; fewer TLB misses where it is taken
}

Arena::Arena(std::string name, std::byte* data, size_t bytes, std::shared_ptr<void> owner)
    : name_(std::move(name)), data_(data), size_(bytes), reservation_(std::move(owner)) {}

Arena::~Arena() {
  if (mapped_) munmap(data_, size_);
}

Arena::Arena(Arena&& other) noexcept
    : name_(std::move(other.name_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapped_(std::exchange(other.mapped_, false)),
      reservation_(std::move(other.reservation_)) {}

void Arena::touch(const Pool& pool) const {
  if (!mapped_) return;
  constexpr size_t piece = size_t{32} << 20;  // whole huge pages
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  pool.run(static_cast<int64_t>((size_ + piece - 1) / piece), [&](int64_t i, int) {
    const size_t begin = static_cast<size_t>(i) * piece;
    for (size_t at = begin; at < std::min(size_, begin + piece); at += page) {
      volatile auto* byte = reinterpret_cast<volatile unsigned char*>(data_ + at);
      *byte = *byte;  // a write that keeps what is there
    }
  });
}

size_t Arena::resident_bytes() const {
  if (!mapped_) return size_;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> present(size_t{1} << 14);  // one a page
  size_t pages = 0;
  for (size_t at = 0; at < size_; at += present.size() * page) {
    const size_t bytes = std::min(size_ - at, present.size() * page);
    if (mincore(data_ + at, bytes, present.data()) != 0) return 0;
    for (size_t i = 0; i < (bytes + page - 1) / page; ++i) pages += present[i] & 1u;
  }
  return std::min(size_, pages * page);
}

}  // namespace hearth
