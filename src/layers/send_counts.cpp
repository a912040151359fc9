// send_counts: if ranks share the experts, each rank tells the others how many rows it has for every
// expert of theirs, so that all know the sizes of what comes: the piece of the layer's offsets that is
// of the experts of that rank, from 0 on. With dropout, also the key of the micro-batch.
#include "layers/guest_rows.h"
#include "layers/kinds.h"
#include "layers/linear.h"

namespace hearth {

namespace {

class SendCounts final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    const bool dropout = has_dropout(s.settings, s.pass);
    std::vector<Port> list;
    if (s.ranks.has_tokens()) {
      list.push_back({.value = Value::route_offsets,
                      .access = Access::read,
                      .dtype = DType::i32,
                      .extra_rows = s.spec.experts + 1});
      if (dropout) add_dropout_port(s, list);
    }
    if (s.ranks.has_experts()) {
      list.push_back(ports::guest_offsets(s, Access::write));
      if (dropout) list.push_back(ports::guest_keys(s, Access::write));
    }
    return list;
  }

  std::vector<BlockUse> blocks(const TaskShape&) const override { return {}; }
  ScratchNeed scratch(const TaskShape&, const OpSet&) const override { return {}; }

  void run(const BodyContext& c) const override {
    const ExpertRanks ranks = c.ranks->experts(c.layer);
    const auto [first, last] = ranks.own(c.spec.experts);
    const int64_t entries = last - first + 1;
    std::vector<SentRows> out;
    std::vector<ReceivedRows> in;
    for (int32_t round = 1; round < ranks.ranks; ++round) {
      const int32_t guest = ranks.guest_of(round), host = ranks.host_of(guest);
      const auto [begin, end] = ranks.of(host, c.spec.experts);
      const bool sends = ranks.has_tokens() && end > begin;
      for (int64_t s = 0; sends && s < c.segments(); ++s) {
        out.push_back({host, read_rows(c, Value::route_offsets, s, begin, end + 1)});
        if (c.has(Value::dropout_key)) {
          out.push_back({host, read_rows(c, Value::dropout_key, s, 0, 1)});
        }
      }
      for (int64_t s = 0; ranks.serves(guest) && s < c.segments(); ++s) {
        in.push_back({guest, written_rows(c, Value::guest_offsets, s, guest * entries,
                                          (guest + 1) * entries)});
        if (c.has(Value::guest_keys)) {
          in.push_back({guest, written_rows(c, Value::guest_keys, s, guest, guest + 1)});
        }
      }
    }
    c.ranks->exchange(c.stream, c.place, RowsGo::out, out, in);
    for (const ReceivedRows& offsets : in) {
      if (offsets.rows.dtype != DType::i32) continue;
      auto* const of = offsets.rows.as<int32_t>();
      for (int64_t e = entries; e-- > 0;) of[e] -= of[0];
    }
  }
};

}  // namespace

const Body& send_counts_body() {
  static const SendCounts body;
  return body;
}

}  // namespace hearth
