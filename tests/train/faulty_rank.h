// Tasks of one rank that do something else than they should.
#pragma once

#include "layers/body.h"

namespace hearth::test {

/// A body that does one thing wrong, in the place of that of a kind while it lives. `at`: only at the
/// rank that owns the embedding, of several.
class BodyOfFaultyRank final : public Body {
 public:
  using Run = void (*)(const Body& right, const BodyContext& c);
  BodyOfFaultyRank(TaskKind kind, Run fault)
      : kind_(kind), fault_(fault), right_(replace_body(kind, *this)) {}
  ~BodyOfFaultyRank() override { replace_body(kind_, right_); }

  std::vector<Port> ports(const TaskShape& s) const override { return right_.ports(s); }
  std::vector<BlockUse> blocks(const TaskShape& s) const override { return right_.blocks(s); }
  ScratchNeed scratch(const TaskShape& s, const OpSet& ops) const override {
    return right_.scratch(s, ops);
  }
  size_t lists(const TaskShape& s) const override { return right_.lists(s); }
  void run(const BodyContext& c) const override { fault_(right_, c); }

 private:
  const TaskKind kind_;
  const Run fault_;
  const Body& right_;
};

inline bool at_owner_of_embedding(const BodyContext& c) {
  return c.table.block(c.table.find_block(BlockKind::embedding)).owned;
}

}  // namespace hearth::test
