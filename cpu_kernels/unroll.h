// Loops over registers are unrolled whole, or the registers would become memory.
#pragma once

#if defined(__clang__)
#define HEARTH_UNROLL(n) _Pragma("clang loop unroll(full)")
#else
#define HEARTH_PRAGMA(text) _Pragma(#text)
#define HEARTH_UNROLL(n) HEARTH_PRAGMA(GCC unroll n)
#endif
