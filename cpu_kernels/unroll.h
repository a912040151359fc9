// Loops over registers are unrolled whole, or the registers would become memory.
//
// Under the sanitizers HEARTH_APART keeps what is copied many times a function of its own, and
// leaves one check out there, of sums of addresses: else the copies of the checks would take a
// minute to compile. What is read and written is checked.
#pragma once

#if defined(__clang__)
#define HEARTH_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#define HEARTH_UNROLL(n) _Pragma("clang loop unroll(full)")
#else
#define HEARTH_PRAGMA(text) _Pragma(#text)
#define HEARTH_UNROLL(n) HEARTH_PRAGMA(GCC unroll n)
#endif

#if defined(__clang__) && HEARTH_SANITIZED
#define HEARTH_APART __attribute__((noinline, no_sanitize("undefined")))
#else
#define HEARTH_APART
#endif
