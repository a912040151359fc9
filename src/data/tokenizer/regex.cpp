#include "data/tokenizer/regex.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>

#include "base/error.h"
#include "data/tokenizer/oniguruma.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace hearth {
namespace {

constexpr size_t kMaxPattern = 16384;      // bytes; published ones have a few hundred
constexpr size_t kMatchLimit = 1'000'000;  // backtracks from one place, and for each byte of text
constexpr size_t kMatchLimitPerByte = 16;
constexpr uint32_t kDepthLimit = 100'000;
constexpr uint32_t kHeapLimit = 65536;  // KiB
constexpr size_t kMaxJitStack = size_t{16} << 20;
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

// What a match needs beside the pattern, one of each a thread.
struct Scratch {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32768, kMaxJitStack, nullptr);
  Watch watch;

  Scratch() {
    HEARTH_CHECK(data != nullptr && context != nullptr, "memory for matching");
    pcre2_set_depth_limit(context, kDepthLimit);
    pcre2_set_heap_limit(context, kHeapLimit);
    if (stack != nullptr) pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Scratch() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
};

std::string error_text(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

}  // namespace

struct Regex::Code {
  pcre2_code* compiled = nullptr;
  std::string where;

  Code() = default;
  ~Code() { pcre2_code_free(compiled); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
};

Regex::Regex(const std::string& pattern, const std::string& where) {
  if (pattern.size() > kMaxPattern) {
    throw input_error(where + ": a pattern of more than " + std::to_string(kMaxPattern) +
                      " bytes is not read");
  }
  const std::string translated = from_oniguruma(pattern, where);
  auto code = std::make_unique<Code>();
  code->where = where;
  int error = 0;
  size_t offset = 0;
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  code->compiled = pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT,
      &error, &offset, context.get());
  if (code->compiled == nullptr) {
    throw input_error(where + ": the pattern " + quoted(pattern) +
                      " is not read: " + error_text(error));
  }
  // Without it (no JIT on this machine) matching is slower, not different.
  pcre2_jit_compile(code->compiled, PCRE2_JIT_COMPLETE);
  code_ = std::move(code);
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

std::optional<TextSpan> Regex::find(std::string_view text, uint32_t start) const {
  thread_local Scratch scratch;
  pcre2_set_match_limit(scratch.context,
                        static_cast<uint32_t>(std::min<size_t>(
                            kMatchLimit + kMatchLimitPerByte * text.size(), UINT32_MAX)));
  while (true) {
    const bool timed = scratch.watch.wanted();
    if (timed) scratch.watch.begin();
    pcre2_set_offset_limit(scratch.context, size_t{start} + kWindow - 1);
    const int result =
        pcre2_match(code_->compiled, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), start,
                    PCRE2_NO_UTF_CHECK, scratch.data, scratch.context);
    if (timed && !scratch.watch.end()) {
      scratch.watch = Watch();
      throw input_error(code_->where + ": matching the pattern takes too long");
    }
    if (result > 0) break;
    if (result != PCRE2_ERROR_NOMATCH) {
      throw input_error(code_->where + ": matching the pattern failed: " + error_text(result));
    }
    if (text.size() - start < kWindow) return std::nullopt;
    start += kWindow;
    while (start < text.size() && (static_cast<uint8_t>(text[start]) & 0xc0) == 0x80) ++start;
  }
  const size_t* match = pcre2_get_ovector_pointer(scratch.data);
  return TextSpan{static_cast<uint32_t>(match[0]), static_cast<uint32_t>(match[1])};
}

}  // namespace hearth
