// Loops over registers are unrolled whole, or the registers would become memory. Not under the
// sanitizers, which check each access: the copies would take a minute to compile.
#pragma once

#if defined(__clang__)
#define HEARTH_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#endif

#if defined(__clang__) && HEARTH_SANITIZED
#define HEARTH_UNROLL(n)
#elif defined(__clang__)
#define HEARTH_UNROLL(n) _Pragma("clang loop unroll(full)")
#else
#define HEARTH_PRAGMA(text) _Pragma(#text)
#define HEARTH_UNROLL(n) HEARTH_PRAGMA(GCC unroll n)
#endif
