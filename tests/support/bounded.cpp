#include "support/bounded.h"

#include <cstdio>
#include <cstdlib>

#include "support/counted_memory.h"

namespace hearth::test {
namespace {

timespec thread_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now;
}

}  // namespace

Bounded::Bounded(size_t input, const Limits& limits)
    : input_(input), limits_(limits), begin_(thread_time()) {
  start_counting();
}

Bounded::~Bounded() {
  const auto held = static_cast<double>(counted_peak());
  const timespec end = thread_time();
  const double seconds = static_cast<double>(end.tv_sec - begin_.tv_sec) +
                         static_cast<double>(end.tv_nsec - begin_.tv_nsec) * 1e-9;
  const auto size = static_cast<double>(input_);
  const double most = limits_.times * size + static_cast<double>(limits_.bytes);
  const double longest = limits_.seconds + limits_.microseconds_a_byte * 1e-6 * size;
  if (held <= most && seconds <= longest) return;
  std::fprintf(stderr,
               "bounds: %zu bytes of input took %.0f bytes (most %.0f), %.3f s (most %.3f)\n",
               input_, held, most, seconds, longest);
  std::abort();
}

}  // namespace hearth::test
