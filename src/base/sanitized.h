// Whether this build is instrumented by the address or thread sanitizer, where loops take ten times
// as long: tests then repeat less, and times mean nothing.
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
