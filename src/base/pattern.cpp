#include "base/pattern.h"

#include <array>

#include "base/error.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace hearth {
namespace {

constexpr uint32_t kHeapLimit = 65536;  // KiB
constexpr size_t kMaxJitStack = size_t{16} << 20;

PCRE2_SPTR units_of(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

// What a match needs beside the pattern, one of each per thread.
struct MatchScratch {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32768, kMaxJitStack, nullptr);

  MatchScratch() {
    HEARTH_CHECK(data != nullptr && context != nullptr, "memory for matching");
    pcre2_set_heap_limit(context, kHeapLimit);
    if (stack != nullptr) pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~MatchScratch() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }
  MatchScratch(const MatchScratch&) = delete;
  MatchScratch& operator=(const MatchScratch&) = delete;
};

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

uint32_t options_of(Pattern::Use use) {
  if (use == Pattern::Use::whole) return PCRE2_UTF | PCRE2_ANCHORED | PCRE2_ENDANCHORED;
  return PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT;
}

}  // namespace

struct Pattern::Code {
  pcre2_code* compiled = nullptr;
  std::string written, where;

  Code() = default;
  ~Code() { pcre2_code_free(compiled); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  std::optional<Match> match(std::string_view text, size_t start, size_t last, uint32_t options,
                             Limits limits) const {
    thread_local MatchScratch scratch;
    pcre2_set_match_limit(scratch.context, limits.backtracks);
    pcre2_set_depth_limit(scratch.context, limits.depth);
    pcre2_set_offset_limit(scratch.context, last);
    const int result = pcre2_match(compiled, units_of(text), text.size(), start, options,
                                   scratch.data, scratch.context);
    if (result == PCRE2_ERROR_NOMATCH) return std::nullopt;
    if (result == PCRE2_ERROR_MATCHLIMIT || result == PCRE2_ERROR_DEPTHLIMIT ||
        result == PCRE2_ERROR_HEAPLIMIT) {
      throw input_error(where + ": the pattern " + quoted(written) + " takes too many steps");
    }
    if (result < 0) {
      throw input_error(where + ": matching the pattern " + quoted(written) +
                        " failed: " + message_of(result));
    }
    const size_t* found = pcre2_get_ovector_pointer(scratch.data);
    return Match{found[0], found[1]};
  }
};

Pattern::Pattern(const std::string& pattern, const Rules& rules, std::string where) {
  if (pattern.size() > rules.most_bytes) {
    throw input_error(where + ": a pattern of more than " + std::to_string(rules.most_bytes) +
                      " bytes is not read: " + quoted(pattern));
  }
  auto code = std::make_shared<Code>();
  code->written = pattern;
  code->where = std::move(where);
  const std::string text = rules.translate ? rules.translate(pattern, code->where) : pattern;
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  if (rules.use == Use::search) pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  size_t offset = 0;
  code->compiled = pcre2_compile(units_of(text), text.size(), options_of(rules.use), &error,
                                 &offset, context.get());
  if (code->compiled == nullptr) {
    throw input_error(code->where + ": the pattern " + quoted(pattern) +
                      " is not read: " + message_of(error));
  }
  // Without it (no JIT on this machine) matching is slower, not different.
  if (rules.use == Use::search) pcre2_jit_compile(code->compiled, PCRE2_JIT_COMPLETE);
  code_ = std::move(code);
}

std::optional<Pattern::Match> Pattern::find(std::string_view text, size_t start, size_t last,
                                            Limits limits) const {
  return code_->match(text, start, last, PCRE2_NO_UTF_CHECK, limits);
}

bool Pattern::matches(std::string_view text, Limits limits) const {
  return code_->match(text, 0, PCRE2_UNSET, 0, limits).has_value();
}

}  // namespace hearth
