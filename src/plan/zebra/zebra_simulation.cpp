#include "plan/zebra/zebra_simulation.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "plan/event_simulation.h"

namespace hearth {

namespace {

double of_phase(const ZebraTime& time, Phase phase) {
  return phase == Phase::forward ? time.forward : time.backward;
}

ZebraTime times_of(const ZebraTime& one, int32_t count) {
  return {one.forward * count, one.backward * count};
}

/// Attention, experts, rows out, rows back.
enum ZebraStream : uint8_t { attention, experts, out, back, kZebraStreams };

class ZebraTasks {
 public:
  ZebraTasks(const ZebraTimes& times, const ExpertShift& shift, const ZebraOrder& order)
      : times_(times), shift_(shift) {
    int32_t micro_batches = 0;
    for (const ZebraTask& task : order) {
      micro_batches = std::max(micro_batches, task.micro_batch + 1);
    }
    of_micro_batch_ = 2 * times.count();
    const auto count = static_cast<size_t>(micro_batches) * static_cast<size_t>(of_micro_batch_);
    out_.resize(count, -1);
    back_.resize(count, -1);
    heads_.resize(static_cast<size_t>(micro_batches), -1);
  }

  /// Returns the number of what computes.
  int32_t add(const ZebraTask& task) {
    return task.experts ? add_experts(task) : add_attention(task);
  }
  EventTimes run() {
    return EventSimulation({streams_.begin(), streams_.end()}, std::move(after_)).run(loads_, {});
  }
  double busy(ZebraStream stream) const {
    double seconds = 0;
    for (const int32_t task : streams_[stream]) {
      seconds += loads_[static_cast<size_t>(task)].seconds;
    }
    return seconds;
  }

 private:
  const ZebraLayerTimes& layer(int32_t at) const { return times_.layers[static_cast<size_t>(at)]; }

  /// Of the experts of a layer in the phase and the micro-batch of a task.
  size_t number(const ZebraTask& task, int32_t layer) const {
    const int32_t of_phase = task.phase == Phase::forward ? layer : times_.count() + layer;
    return static_cast<size_t>(task.micro_batch * of_micro_batch_ + of_phase);
  }

  int32_t issue(ZebraStream stream, double seconds, std::vector<int32_t> after) {
    const auto id = static_cast<int32_t>(loads_.size());
    streams_[stream].push_back(id);
    loads_.push_back({seconds});
    after_.push_back(std::move(after));
    return id;
  }

  int32_t add_attention(const ZebraTask& task) {
    const bool forward = task.phase == Phase::forward;
    const int32_t last = times_.count();
    std::vector<int32_t> after;
    if (!forward && task.at == last) {
      after.push_back(heads_[static_cast<size_t>(task.micro_batch)]);
    } else if (task.at > 0 || !forward) {
      after.push_back(back_[number(task, forward ? task.at - 1 : task.at)]);
    }
    HEARTH_CHECK(after.empty() || after.front() >= 0, "zebra: a task before what it needs");
    const int32_t id =
        issue(attention, of_phase(times_.stages[static_cast<size_t>(task.at)], task.phase), after);
    if (forward && task.at == last) heads_[static_cast<size_t>(task.micro_batch)] = id;
    const int32_t of = forward ? task.at : task.at - 1;  // whose rows leave
    if (of >= 0 && of < last) {
      out_[number(task, of)] = issue(out, of_phase(layer(of).out, task.phase), {id});
    }
    return id;
  }

  int32_t add_experts(const ZebraTask& task) {
    const int32_t rows = out_[number(task, task.at)], moved = moved_of(shift_, task.at);
    HEARTH_CHECK(rows >= 0, "zebra: experts before their rows");
    const int32_t id =
        issue(experts, of_phase(experts_there(times_, task.at, moved), task.phase), {rows});
    std::vector<int32_t> computed = {id};
    if (moved > 0) {
      computed.push_back(
          issue(attention, of_phase(experts_here(times_, task.at, moved), task.phase), {rows}));
    }
    back_[number(task, task.at)] = issue(back, of_phase(layer(task.at).back, task.phase), computed);
    return id;
  }

  const ZebraTimes& times_;
  const ExpertShift& shift_;
  std::array<std::vector<int32_t>, kZebraStreams> streams_;
  std::vector<std::vector<int32_t>> after_;
  std::vector<TaskLoad> loads_;
  int32_t of_micro_batch_ = 0;
  std::vector<int32_t> out_, back_;  // exchanges, by `number`
  std::vector<int32_t> heads_;       // by micro-batch
};

}  // namespace

int32_t experts_taken(const ZebraTimes& times, int32_t moved) {
  return moved * times.expert_ranks / times.attention_ranks;
}

ZebraTime experts_there(const ZebraTimes& times, int32_t layer, int32_t moved) {
  return times_of(times.layers[static_cast<size_t>(layer)].expert_there,
                  times.most_experts() - moved);
}

ZebraTime experts_here(const ZebraTimes& times, int32_t layer, int32_t moved) {
  return times_of(times.layers[static_cast<size_t>(layer)].expert_here,
                  experts_taken(times, moved));
}

ZebraRun simulate_zebra(const ZebraTimes& times, const ZebraOrder& order,
                        const ExpertShift& shift) {
  HEARTH_CHECK(std::ssize(times.stages) == times.count() + 1, "zebra: one stage more than layers");
  ZebraTasks tasks(times, shift, order);
  std::vector<int32_t> computed;
  computed.reserve(order.size());
  for (const ZebraTask& task : order) computed.push_back(tasks.add(task));
  ZebraRun run;
  run.attention_s = tasks.busy(attention);
  run.experts_s = tasks.busy(experts);
  const EventTimes events = tasks.run();
  run.time_s = events.last;
  for (const int32_t id : computed) {
    run.begin.push_back(events.begin[static_cast<size_t>(id)]);
    run.end.push_back(events.end[static_cast<size_t>(id)]);
  }
  return run;
}

double zebra_bound(const ZebraTimes& times, int32_t micro_batches, const ExpertShift& shift) {
  double attention = 0, experts = 0, chain = 0;
  for (const ZebraTime& stage : times.stages) {
    attention += stage.total();
    chain += stage.total();
  }
  for (int32_t layer = 0; layer < times.count(); ++layer) {
    const int32_t moved = moved_of(shift, layer);
    const ZebraTime there = experts_there(times, layer, moved),
                    here = experts_here(times, layer, moved);
    const ZebraLayerTimes& of = times.layers[static_cast<size_t>(layer)];
    attention += here.total();
    experts += there.total();
    chain += of.out.total() + of.back.total() + std::max(there.forward, here.forward) +
             std::max(there.backward, here.backward);
  }
  return std::max({attention * micro_batches, experts * micro_batches, chain});
}

}  // namespace hearth
