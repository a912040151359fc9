// A gzip, zstd or xz stream. However it is cut into pieces, and whatever room there is for the result, it
// gives the same bytes and the same end; what is no whole stream is an input error.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "data/rows/decoders.h"
#include "support/bounded.h"

namespace {

using namespace hearth;

constexpr size_t kMost = size_t{1} << 18;  // of a stream that grows
constexpr int kWindowLog = 20;

void check(bool condition) {
  if (!condition) std::abort();
}

struct Unpacked {
  std::string text;
  bool error = false, whole = false;
  friend bool operator==(const Unpacked&, const Unpacked&) = default;
};

Unpacked unpack(std::string_view packed, size_t piece, size_t room, size_t most = kMost) {
  Unpacked result;
  const auto decoder = make_unpacker(packed, "fuzz", kWindowLog);
  try {
    std::string buffer(room, '\0');
    while (result.text.size() < most) {
      std::string_view left = packed.substr(0, piece);
      packed.remove_prefix(left.size());
      const bool last = left.empty();
      size_t given = 0;
      do {
        const size_t before = left.size();
        std::span<char> free(buffer);
        decoder->decode(left, free);
        given = room - free.size();
        check(left.size() <= before && free.size() <= room);
        result.text.append(buffer, 0, given);
        if (given == 0 && left.size() == before && !left.empty()) return result;  // stuck
      } while ((given > 0 || !left.empty()) && result.text.size() < most);
      if (last) break;
    }
    result.whole = decoder->at_end();
  } catch (const Error& error) {
    check(error.code() == ExitCode::input);
    result.error = true;
  }
  result.text.resize(std::min(result.text.size(), most));
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view packed(reinterpret_cast<const char*>(data), size);
  if (!make_unpacker(packed, "fuzz", kWindowLog)) return 0;
  Unpacked at_once;
  {
    // The window that a stream may ask for, and what is kept of the result.
    const test::Bounded bound(size, {.bytes = 32 << 20, .seconds = 3});
    at_once = unpack(packed, size, size_t{1} << 16);
  }
  if (at_once.text.size() >= kMost) return 0;
  // Where a call ends in an error, what came before it may have been given out or not.
  const size_t most = 2 * kMost;
  const Unpacked in_pieces = unpack(packed, 7, 61, most);
  check(at_once.error == in_pieces.error || in_pieces.text.size() == most);
  if (!at_once.error) check(at_once == in_pieces);
  return 0;
}
