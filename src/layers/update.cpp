// update: AdamW on the blocks of a layer, of the embedding or of the head, at one place. If the
// gradient of the step is not finite, no weight changes; the gradient is cleared all the same. In a
// schedule that rotates, the update of the step before; if none is due, nothing happens.
#include <span>
#include <vector>

#include "layers/kinds.h"
#include "model/parameter_memory.h"

namespace hearth {

namespace {

class Update final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    std::vector<Port> list;
    for (const Value v : {Value::lr, Value::update_step, s.rotates ? Value::due_clip : Value::clip,
                          s.rotates ? Value::due_finite : Value::finite}) {
      list.push_back(ports::scalar(v, Access::read));
    }
    return list;
  }

  /// The task's share of the blocks of its layer that live at its place, and their adapters, those that
  /// this rank owns; may be none.
  std::vector<BlockUse> blocks(const TaskShape& s) const override {
    const auto [layer, end_of_layer] = blocks_of_layer(s);
    const auto begin_of = [&, from = layer, count = end_of_layer - layer](int32_t share) {
      return from + static_cast<BlockId>(int64_t{count} * share / s.update.count);
    };
    const BlockId first = begin_of(s.update.number), last = begin_of(s.update.number + 1);
    std::vector<BlockUse> uses;
    for (const auto& [begin, end] : blocks_at(s.table, first, last, s.place)) {
      add_owned(s.table, begin, end, uses);
      const auto [adapter, adapters_end] = s.table.adapters_of(begin, end);
      add_owned(s.table, adapter, adapters_end, uses);
    }
    return uses;
  }

  ScratchNeed scratch(const TaskShape& s, const OpSet& ops) const override {
    return ops.row_scratch(1, s.spec.hidden);
  }

  size_t lists(const TaskShape& s) const override {
    const int64_t most = tensors_of(s.table, blocks(s));
    return list_bytes<UpdateRun>(most) + list_bytes<AdamWTensors>(most);
  }

  void run(const BodyContext& c) const override {
    if (c.scalar(Value::update_step) == 0) return;
    const bool rotates = c.has(Value::due_finite);
    const bool finite = c.scalar(rotates ? Value::due_finite : Value::finite) != 0;
    const bool by_factor = c.settings.lora_plus != 1;
    const int64_t most = tensors_of(c.table, c.blocks);
    auto runs = list_of<UpdateRun>(c, most);
    for (const BlockUse& use : c.blocks) {
      add_update_runs(c.table, use.begin, use.end, by_factor, runs);
    }
    if (!finite) {
      for (const UpdateRun& run : runs) c.ops.clear(c.stream, run.gradient);
      return;
    }
    auto tensors = list_of<AdamWTensors>(c, most);
    for (const bool decayed : {false, true}) {
      for (const bool of_b : {false, true}) {  // B of adapters has a learning rate of its own
        tensors.clear();
        for (const UpdateRun& run : runs) {
          if (run.decayed != decayed || (by_factor && run.factor == Factor::b) != of_b) continue;
          tensors.push_back({run.gradient, run.master, run.moment1, run.moment2, run.working});
          for (TensorId id = run.begin; id < run.end; ++id) {
            c.table.mark_updated(id, static_cast<bool>(run.working));
          }
        }
        update(c, decayed, of_b ? c.settings.lora_plus : 1, tensors);
      }
    }
  }

 private:
  static void add_owned(const ParameterTable& table, BlockId begin, BlockId end,
                        std::vector<BlockUse>& uses) {
    bool joins = false;
    for (BlockId id = begin; id < end; ++id) {
      const bool owned = table.block(id).owned;
      if (owned && joins) {
        uses.back().end = id + 1;
      } else if (owned) {
        uses.push_back({id, id + 1, BlockAccess::update});
      }
      joins = owned;
    }
  }

  static int64_t tensors_of(const ParameterTable& table, std::span<const BlockUse> uses) {
    int64_t count = 0;
    for (const BlockUse& use : uses) {
      count += table.block(use.end - 1).end - table.block(use.begin).begin;
    }
    return count;
  }

  /// One call for all runs: a device starts one kernel for them. LoRA+ multiplies the learning rate
  /// alone (Hayou et al., arXiv 2402.12354), so decay is multiplied, too, as in PEFT.
  static void update(const BodyContext& c, bool decayed, double rate,
                     std::span<const AdamWTensors> tensors) {
    if (tensors.empty()) return;
    AdamWOptions options = c.settings.adamw;
    options.lr = rate * c.scalar(Value::lr);
    if (!decayed) options.weight_decay = 0;
    options.step = static_cast<int64_t>(c.scalar(Value::update_step));
    options.gradient_scale = c.scalar(c.has(Value::due_clip) ? Value::due_clip : Value::clip);
    c.ops.adamw(c.stream, options, tensors);
  }
};

}  // namespace

const Body& update_body() {
  static const Update body;
  return body;
}

}  // namespace hearth
