// Whether the address or thread sanitizer instruments this build. Loops then take ten times as
// long, so tests repeat less, and timings mean nothing.
#pragma once

namespace hearth {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace hearth
