#include "data/tokenizer/regex.h"

#include <algorithm>
#include <chrono>
#include <ctime>

#include "base/error.h"
#include "data/tokenizer/oniguruma.h"

namespace hearth {
namespace {

constexpr size_t kMaxPattern = 16384;      // bytes; published ones have a few hundred
constexpr size_t kMatchLimit = 1'000'000;  // backtracks from one place, and for each byte of text
constexpr size_t kMatchLimitPerByte = 16;
constexpr uint32_t kDepthLimit = 100'000;
constexpr uint32_t kWindow = 64;  // places that one call tries to match from

// Stops patterns whose backtracking stays below the limit from every single place. It times a call
// now and then; one that is slow has it add up the processor time of the next ones.
class Watch {
 public:
  /// Whether the next call shall be timed.
  bool wanted() { return strict_ > 0 || ++calls_ % 16 == 0; }
  void begin() { begin_ = strict_ > 0 ? processor_seconds() : wall_seconds(); }
  /// False when calls took too long.
  bool end() {
    if (strict_ > 0) {
      used_ += processor_seconds() - begin_;
      --strict_;
    } else if (wall_seconds() - begin_ > kSlowSeconds) {
      strict_ = kStrictCalls;
      used_ = 0;
    }
    return used_ < kMostSeconds;
  }

 private:
  static constexpr double kSlowSeconds = 0.02;
  static constexpr double kMostSeconds = 2;
  static constexpr uint32_t kStrictCalls = 1024;

  static double wall_seconds() {
    using Seconds = std::chrono::duration<double>;
    return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  static double processor_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  uint32_t calls_ = 0;
  uint32_t strict_ = 0;  // calls that are yet to be added up
  double begin_ = 0, used_ = 0;
};

}  // namespace

Regex::Regex(const std::string& pattern, const std::string& where)
    : pattern_(pattern, {Pattern::Use::search, kMaxPattern, from_oniguruma}, where),
      where_(where) {}

std::optional<TextSpan> Regex::find(std::string_view text, uint32_t start) const {
  thread_local Watch watch;
  const size_t limit = std::min<size_t>(kMatchLimit + kMatchLimitPerByte * text.size(), UINT32_MAX);
  while (true) {
    const bool timed = watch.wanted();
    if (timed) watch.begin();
    const auto match = pattern_.find(text, start, size_t{start} + kWindow - 1,
                                     {static_cast<uint32_t>(limit), kDepthLimit});
    if (timed && !watch.end()) {
      watch = Watch();
      throw input_error(where_ + ": matching the pattern takes too long");
    }
    if (match) {
      return TextSpan{static_cast<uint32_t>(match->begin), static_cast<uint32_t>(match->end)};
    }
    if (text.size() - start < kWindow) return std::nullopt;
    start += kWindow;
    while (start < text.size() && (static_cast<uint8_t>(text[start]) & 0xc0) == 0x80) ++start;
  }
}

}  // namespace hearth
