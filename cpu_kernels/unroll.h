// HEARTH_UNROLL(n) fully unrolls loops over registers; otherwise the registers would spill to
// memory.
//
// HEARTH_APART, in clang's sanitizer builds, keeps functions from being inlined many times and
// disables their undefined-behaviour checks. Otherwise the copies of the checks would take a minute
// to compile. Reads and writes are still checked.
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
