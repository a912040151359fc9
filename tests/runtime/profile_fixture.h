// A tiny model to measure, and bodies that do something else than theirs.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/place_profile.h"
#include "runtime/steps.h"

namespace hearth::test {

inline constexpr uint64_t kPlenty = uint64_t{64} << 20;

/// The shapes of a tiny model, all of it trained.
struct Shapes {
  ModelSpec spec;
  ParameterTable table;

  explicit Shapes(const JsonObject& changes = {}, const std::vector<std::string>& adapters = {}) {
    TinyModel model(tiny_config(changes), cpu(), DType::f32, 1, adapters);
    spec = model.spec;
    table = model.table;
  }

  BenchSubject subject(Compute compute = Compute::f32, Place place = kHostPlace,
                       uint64_t bytes = kPlenty) const {
    BenchSubject s{{}, {}, {true, compute, DType::f32}, 16};
    s.settings.compute = compute;
    s.settings.aux_loss = .01;
    s.model = bench_model(spec, table, s.policy, place, bytes);
    return s;
  }
};

inline const CostEntry* find(const PlaceProfile& profile, TaskKind kind, Phase phase) {
  for (const CostEntry& e : profile.entries) {
    if (e.kind == kind && e.phase == phase) return &e;
  }
  return nullptr;
}

/// Runs another body first, or something else.
class Decorated final : public Body {
 public:
  Decorated(TaskKind kind, std::function<void(const BodyContext&)> before, bool runs = true)
      : kind_(kind), before_(std::move(before)), runs_(runs), body_(replace_body(kind, *this)) {}
  ~Decorated() override { replace_body(kind_, body_); }
  Decorated(const Decorated&) = delete;
  Decorated& operator=(const Decorated&) = delete;

  std::vector<Port> ports(const TaskShape& s) const override { return body_.ports(s); }
  std::vector<BlockUse> blocks(const TaskShape& s) const override { return body_.blocks(s); }
  ScratchNeed scratch(const TaskShape& s, const OpSet& o) const override {
    return body_.scratch(s, o);
  }
  Work work(const TaskShape& s) const override { return body_.work(s); }
  size_t lists(const TaskShape& s) const override { return body_.lists(s); }
  void run(const BodyContext& c) const override {
    before_(c);
    if (runs_) body_.run(c);
  }

 private:
  TaskKind kind_;
  std::function<void(const BodyContext&)> before_;
  bool runs_;
  const Body& body_;
};

}  // namespace hearth::test
