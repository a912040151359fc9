#include "layers/guest_rows.h"

#include <utility>

#include "layers/kinds.h"

namespace hearth {

namespace {

bool is_of_guests(Value value) { return info_of(value).of_part; }

/// Of a round, by micro-batch.
struct RoundRows {
  int32_t guest = 0, host = 0;  // ExpertRanks
  std::vector<std::pair<int32_t, int32_t>>
      away;                     // rows [first, second) of this rank, which `host` has
  std::vector<int32_t> guests;  // how many rows of `guest` are here
};

RoundRows rows_of_round(const BodyContext& c) {
  const ExpertRanks ranks = c.ranks->experts(c.layer);
  const auto segments = static_cast<size_t>(c.segments());
  RoundRows rows{c.part.place, ranks.host_of(c.part.place), {}, {}};
  rows.away.resize(segments);
  rows.guests.resize(segments);
  const auto [first, last] = ranks.own(c.spec.experts);
  const auto [begin, end] = ranks.of(rows.host, c.spec.experts);
  const int64_t behind = (rows.guest + 1) * (last - first + 1) - 1;
  for (int64_t s = 0; s < c.segments(); ++s) {
    const auto at = static_cast<size_t>(s);
    if (c.has(Value::route_offsets)) {
      const auto* const own =
          read_rows(c, Value::route_offsets, s, 0, c.spec.experts + 1).as<int32_t>();
      rows.away[at] = {own[begin], own[end]};
    }
    if (c.has(Value::guest_offsets)) {
      rows.guests[at] = read_rows(c, Value::guest_offsets, s, behind, behind + 1).as<int32_t>()[0];
    }
  }
  return rows;
}

int64_t first_row(const BodyContext& c, Value value, int64_t segment) {
  return segment == 0 ? 0 : segment * c.stride(value);
}

}  // namespace

std::vector<Port> exchange_ports(const TaskShape& s, std::span<const SentValue> values,
                                 Access received) {
  const bool own = s.ranks.has_tokens(), guests = s.ranks.serves(s.part.place);
  std::vector<Port> list;
  if (own) {
    list.push_back({.value = Value::route_offsets,
                    .access = Access::read,
                    .dtype = DType::i32,
                    .extra_rows = s.spec.experts + 1});
  }
  if (guests) list.push_back(ports::guest_offsets(s, Access::read));
  for (const SentValue& sent : values) {
    const auto add = [&](Value value, Access access) {
      if (!(is_of_guests(value) ? guests : own)) return;
      list.push_back(sent.is_number ? ports::row_numbers(s, value, access)
                                    : ports::rows(s, value, sent.cols, access));
    };
    add(sent.from, Access::read);
    add(sent.to, received);
  }
  return list;
}

void exchange_rows(const BodyContext& c, RowsGo go, std::span<const SentValue> values) {
  const RoundRows rows = rows_of_round(c);
  const auto rank_of = [&](Value here) { return is_of_guests(here) ? rows.guest : rows.host; };
  std::vector<SentRows> out;
  std::vector<ReceivedRows> in;
  for (int64_t s = 0; s < c.segments(); ++s) {
    const auto at = static_cast<size_t>(s);
    const auto range_of = [&](Value here) {
      return is_of_guests(here) ? std::pair(0, rows.guests[at]) : rows.away[at];
    };
    for (const SentValue& sent : values) {
      if (c.has(sent.from)) {
        const auto [begin, end] = range_of(sent.from);
        out.push_back({rank_of(sent.from), read_rows(c, sent.from, s, begin, end)});
      }
      if (c.has(sent.to)) {
        const auto [begin, end] = range_of(sent.to);
        in.push_back({rank_of(sent.to), written_rows(c, sent.to, s, begin, end)});
      }
    }
  }
  c.ranks->exchange(c.stream, c.place, go, out, in);
}

ConstView read_rows(const BodyContext& c, Value value, int64_t segment, int64_t begin,
                    int64_t end) {
  return c.in(value).slice(first_row(c, value, segment) + begin, end - begin);
}

View written_rows(const BodyContext& c, Value value, int64_t segment, int64_t begin, int64_t end) {
  return c.out(value).slice(first_row(c, value, segment) + begin, end - begin);
}

}  // namespace hearth
