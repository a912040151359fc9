#include "budget/shift_room.h"

#include <map>

namespace hearth {

namespace {

/// The first number in [begin, end) for which that holds, where it holds for all behind it; `end`: none.
template <class Holds>
int64_t first_that(int64_t begin, int64_t end, const Holds& holds) {
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    if (holds(middle)) {
      end = middle;
    } else {
      begin = middle + 1;
    }
  }
  return begin;
}

}  // namespace

ShiftBounds room_for_shift(const ZebraTimes& times,
                           const std::function<RolesLack(const ExpertShift&)>& lack_of) {
  const int64_t end = most_chunks(times) + 1;
  std::map<int64_t, RolesLack> known;
  const auto lack = [&](int64_t chunks) -> const RolesLack& {
    const auto found = known.find(chunks);
    if (found != known.end()) return found->second;
    return known.emplace(chunks, lack_of(even_shift(times, chunks))).first->second;
  };
  const ShiftChunk chunk = shift_chunk(times.attention_ranks, times.expert_ranks);
  const int64_t least = first_that(0, end, [&](int64_t n) { return lack(n).experts.empty(); });
  const int64_t too_many =
      first_that(1, end, [&](int64_t n) { return !lack(n).attention.empty(); });
  ShiftBounds bounds;
  bounds.least_moved = least == end ? 0 : least * chunk.given * times.expert_ranks;
  bounds.most_taken = (too_many - 1) * chunk.taken;
  return bounds;
}

}  // namespace hearth
