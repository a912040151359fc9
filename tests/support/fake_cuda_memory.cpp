#include "support/fake_cuda_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace hearth::test {
namespace {

constexpr size_t kAlignment = 256;

size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }
size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

FakeDeviceMemory::~FakeDeviceMemory() {
  for (auto& [address, piece] : pieces_) munmap(piece.mapping, piece.pages + page_bytes());
}

void* FakeDeviceMemory::allocate(int device, size_t bytes) {
  Piece piece;
  piece.pages = round_up(bytes, page_bytes());
  piece.bytes = bytes;
  piece.device = device;
  void* mapping = mmap(nullptr, piece.pages + page_bytes(), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  piece.mapping = static_cast<std::byte*>(mapping);
  std::memset(mapping, 0xcd, piece.pages);
  mprotect(mapping, piece.pages + page_bytes(), PROT_NONE);
  std::byte* data = piece.mapping + (piece.pages - round_up(bytes, kAlignment));
  pieces_[data] = piece;
  return data;
}

bool FakeDeviceMemory::release(void* address) {
  const auto it = pieces_.find(static_cast<std::byte*>(address));
  if (it == pieces_.end()) return false;
  munmap(it->second.mapping, it->second.pages + page_bytes());
  pieces_.erase(it);
  return true;
}

size_t FakeDeviceMemory::bytes_of(int device) const {
  size_t sum = 0;
  for (const auto& [address, piece] : pieces_) sum += piece.device == device ? piece.bytes : 0;
  return sum;
}

const FakeDeviceMemory::Piece* FakeDeviceMemory::find(const void* address) const {
  const auto* at = static_cast<const std::byte*>(address);
  auto next = pieces_.upper_bound(at);
  if (next == pieces_.begin()) return nullptr;
  const auto& [begin, piece] = *--next;
  return at < begin + piece.bytes ? &piece : nullptr;
}

int FakeDeviceMemory::owner(const void* address) const {
  const Piece* piece = find(address);
  return piece != nullptr ? piece->device : -1;
}

bool FakeDeviceMemory::holds(const void* address, size_t bytes) const {
  const Piece* piece = find(address);
  if (piece == nullptr) return false;
  const std::byte* end =
      piece->mapping + piece->pages - (round_up(piece->bytes, kAlignment) - piece->bytes);
  return bytes <= static_cast<size_t>(end - static_cast<const std::byte*>(address));
}

void FakeDeviceMemory::open(const std::vector<int>& devices) {
  for (auto& [address, piece] : pieces_) {
    if (std::find(devices.begin(), devices.end(), piece.device) == devices.end()) continue;
    mprotect(piece.mapping, piece.pages, PROT_READ | PROT_WRITE);
    piece.is_open = true;
  }
}

void FakeDeviceMemory::close() {
  for (auto& [address, piece] : pieces_) {
    if (!piece.is_open) continue;
    mprotect(piece.mapping, piece.pages, PROT_NONE);
    piece.is_open = false;
  }
}

}  // namespace hearth::test
