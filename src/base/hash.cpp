#include "base/hash.h"

#include <xxhash.h>

#include <algorithm>
#include <new>
#include <utility>

namespace hearth {
namespace {

Digest digest_from(XXH128_hash_t h) { return {h.high64, h.low64}; }

}  // namespace

std::string Digest::hex() const {
  constexpr char digits[] = "0123456789abcdef";
  std::string text(32, '0');
  for (int i = 0; i < 16; ++i) {
    text[static_cast<size_t>(i)] = digits[high >> (60 - 4 * i) & 15];
    text[static_cast<size_t>(16 + i)] = digits[low >> (60 - 4 * i) & 15];
  }
  return text;
}

std::optional<Digest> Digest::from_hex(std::string_view text) {
  Digest d;
  if (text.size() != 32) return std::nullopt;
  for (size_t i = 0; i < 32; ++i) {
    const char c = text[i];
    uint64_t digit;
    if (c >= '0' && c <= '9') {
      digit = static_cast<uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<uint64_t>(c - 'a') + 10;
    } else {
      return std::nullopt;
    }
    uint64_t& half = i < 16 ? d.high : d.low;
    half = half << 4 | digit;
  }
  return d;
}

struct Hasher::State {
  XXH3_state_t* xxh = XXH3_createState();
  State() {
    if (!xxh) throw std::bad_alloc();
    XXH3_128bits_reset(xxh);
  }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Hasher::Hasher() : state_(std::make_unique<State>()) {}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

void Hasher::update(const void* data, size_t bytes) {
  if (bytes > 0) XXH3_128bits_update(state_->xxh, data, bytes);
}

void Hasher::update_field(std::string_view text) {
  update_u64(text.size());
  update(text.data(), text.size());
}

void Hasher::update_u64(uint64_t value) {
  unsigned char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(value >> (8 * i));
  update(bytes, sizeof bytes);
}

Digest Hasher::digest() const { return digest_from(XXH3_128bits_digest(state_->xxh)); }

void ChunkHasher::update(const void* data, size_t bytes) {
  const auto* from = static_cast<const unsigned char*>(data);
  while (bytes > 0) {
    const size_t n = std::min<uint64_t>(bytes, chunk_bytes_ - in_chunk_);
    hasher_.update(from, n);
    from += n;
    bytes -= n;
    in_chunk_ += n;
    if (in_chunk_ == chunk_bytes_) {
      digests_.push_back(hasher_.digest());
      hasher_ = Hasher();
      in_chunk_ = 0;
    }
  }
}

std::vector<Digest> ChunkHasher::finish() {
  if (in_chunk_ > 0) digests_.push_back(hasher_.digest());
  return std::move(digests_);
}

Digest digest_of(const void* data, size_t bytes) { return digest_from(XXH3_128bits(data, bytes)); }

Digest digest_of(std::string_view text) { return digest_of(text.data(), text.size()); }

}  // namespace hearth
