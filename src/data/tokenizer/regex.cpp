#include "data/tokenizer/regex.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace hearth {
namespace {

constexpr size_t kMaxPattern = 16384;  // bytes; published ones have a few hundred
constexpr uint32_t kMatchLimit = 20'000'000;
constexpr uint32_t kHeapLimit = 65536;  // KiB
constexpr size_t kMaxJitStack = size_t{16} << 20;

// What a match needs beside the pattern, one of each a thread.
struct Scratch {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32768, kMaxJitStack, nullptr);

  Scratch() {
    HEARTH_CHECK(data != nullptr && context != nullptr, "memory for matching");
    pcre2_set_match_limit(context, kMatchLimit);
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

// The part of a pattern that PCRE2 would read otherwise than Oniguruma, or that is no part of any
// published tokenizer; empty when there is none.
std::string foreign_part(std::string_view pattern) {
  constexpr std::string_view kLetterEscapes = "pPsSdDwWrntfx";
  constexpr std::array<std::string_view, 7> kGroups = {"(?:",  "(?i:", "(?=", "(?!",
                                                       "(?<=", "(?<!", "(?>"};
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const std::string_view rest = pattern.substr(i);
    const char c = pattern[i];
    if (c == '\\') {
      if (rest.size() < 2) return "\\";
      const auto escaped = static_cast<unsigned char>(rest[1]);
      if (std::isdigit(escaped) ||
          (std::isalpha(escaped) && kLetterEscapes.find(rest[1]) == std::string_view::npos)) {
        return std::string(rest.substr(0, 2));
      }
      ++i;
    } else if (in_class) {
      if (c == '[' || rest.starts_with("&&")) return std::string(rest.substr(0, 2));
      in_class = c != ']';
    } else if (c == '[') {
      in_class = true;
      if (rest.starts_with("[^")) ++i;
      if (pattern.substr(i + 1).starts_with("]")) return "[]";
    } else if (c == '^' || c == '$') {
      return std::string(1, c);
    } else if (rest.starts_with("(*") ||
               (rest.starts_with("(?") &&
                std::none_of(kGroups.begin(), kGroups.end(),
                             [&](std::string_view group) { return rest.starts_with(group); }))) {
      return std::string(rest.substr(0, 3));
    }
  }
  return "";
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
  if (const std::string part = foreign_part(pattern); !part.empty()) {
    throw input_error(where + ": " + quoted(part) + " in the pattern " + quoted(pattern) +
                      " is not read by this version");
  }
  auto code = std::make_unique<Code>();
  code->where = where;
  int error = 0;
  size_t offset = 0;
  code->compiled =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
  if (code->compiled == nullptr) {
    throw input_error(where + ": the pattern " + quoted(pattern) + " fails at byte " +
                      std::to_string(offset) + ": " + error_text(error));
  }
  // Without it (no JIT on this machine) matching is slower, not different.
  pcre2_jit_compile(code->compiled, PCRE2_JIT_COMPLETE);
  code_ = std::move(code);
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

std::optional<TextSpan> Regex::find(std::string_view text, uint32_t start) const {
  thread_local const Scratch scratch;
  const int result =
      pcre2_match(code_->compiled, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), start,
                  PCRE2_NO_UTF_CHECK, scratch.data, scratch.context);
  if (result == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (result < 0) {
    throw input_error(code_->where + ": matching the pattern failed: " + error_text(result));
  }
  const size_t* match = pcre2_get_ovector_pointer(scratch.data);
  return TextSpan{static_cast<uint32_t>(match[0]), static_cast<uint32_t>(match[1])};
}

}  // namespace hearth
