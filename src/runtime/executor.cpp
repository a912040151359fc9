#include "runtime/executor.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <mutex>
#include <unordered_map>

#include "runtime/stream_threads.h"

namespace hearth {

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Which buffer holds a value: the first that was made of it. Layer and micro-batch count where the
/// value belongs to one.
class ValueIndex {
 public:
  explicit ValueIndex(const Schedule& s) {
    for (size_t i = 0; i < s.buffers.size(); ++i) {
      const Buffer& b = s.buffers[i];
      ids_.emplace(key_of(b.port.value, b.layer, b.micro_batch), static_cast<BufferId>(i));
    }
  }
  BufferId find(Value value, int32_t layer, int32_t micro_batch) const {
    const auto it = ids_.find(key_of(value, layer, micro_batch));
    HEARTH_CHECK(it != ids_.end(), "executor: no such value in the list");
    return it->second;
  }

 private:
  static uint64_t key_of(Value value, int32_t layer, int32_t micro_batch) {
    const Scope scope = info_of(value).scope;
    const uint64_t of_layer = scope == Scope::layer ? static_cast<uint32_t>(layer + 1) : 0;
    const uint64_t of_batch = scope == Scope::step ? 0 : static_cast<uint32_t>(micro_batch + 1);
    return static_cast<uint64_t>(value) << 56 | of_layer << 32 | of_batch;
  }
  std::unordered_map<uint64_t, BufferId> ids_;
};

/// The tasks of other streams that a task waits for. Streams keep their order, so of each other
/// stream only the latest counts.
std::vector<std::vector<TaskId>> waits_of(const Schedule& s) {
  std::vector<std::vector<TaskId>> waits(s.tasks.size());
  if (s.streams.size() < 2) return waits;  // list order is a legal order
  const auto all = dependencies(s);
  for (size_t t = 0; t < s.tasks.size(); ++t) {
    std::vector<TaskId> latest(s.streams.size(), -1);
    for (const TaskId before : all[t]) {
      const int32_t stream = s.tasks[static_cast<size_t>(before)].stream;
      if (stream != s.tasks[t].stream) latest[static_cast<size_t>(stream)] = before;
    }
    for (const TaskId before : latest) {
      if (before >= 0) waits[t].push_back(before);
    }
  }
  return waits;
}

}  // namespace

struct Executor::Impl {
  ExecutorParts parts;
  const Schedule& schedule;
  ValueIndex values;
  std::vector<std::vector<BoundPort>> ports;   // of each task
  std::vector<std::vector<TaskId>> waits;      // of each task
  std::vector<std::unique_ptr<Event>> events;  // of tasks that others wait for
  std::vector<std::vector<TaskId>> by_stream;
  StreamThreads threads;

  Impl(const ExecutorParts& p, const Schedule& s)
      : parts(p),
        schedule(s),
        values(s),
        waits(waits_of(s)),
        events(s.tasks.size()),
        by_stream(s.streams.size()),
        threads(s.streams.size()) {
    HEARTH_CHECK(s.arena_bytes <= p.workspace.arena->size() &&
                     s.streams.size() <= p.workspace.streams.size(),
                 "executor: workspace too small for the list");
    for (size_t t = 0; t < s.tasks.size(); ++t) {
      const Task& task = s.tasks[t];
      by_stream[static_cast<size_t>(task.stream)].push_back(static_cast<TaskId>(t));
      std::vector<BoundPort>& bound = ports.emplace_back();
      for (const BufferUse& use : task.uses) bound.push_back({use.port, address(use.buffer)});
      for (const TaskId before : waits[t]) {
        auto& event = events[static_cast<size_t>(before)];
        if (!event) event = parts.device.create_event();
      }
    }
  }

  std::byte* address(BufferId id) const {
    return parts.workspace.arena->data() + schedule.buffers[static_cast<size_t>(id)].address;
  }

  void run_task(TaskId id, std::span<const BatchShape> batches) const {
    const auto index = static_cast<size_t>(id);
    const Task& task = schedule.tasks[index];
    const BatchShape batch =
        task.micro_batch >= 0 ? batches[static_cast<size_t>(task.micro_batch)] : BatchShape{};
    HEARTH_CHECK(batch.tokens <= schedule.tokens, "executor: micro-batch over its bound");
    const BodyContext context{
        parts.ops,   *parts.workspace.streams[static_cast<size_t>(task.stream)],
        parts.spec,  parts.settings,
        parts.table, schedule.pass,
        task.phase,  task.layer,
        batch,       ports[index],
        task.blocks};
    body_of(task.kind).run(context);
  }
};

Executor::Executor(const ExecutorParts& parts, const Schedule& schedule)
    : impl_(std::make_unique<Impl>(parts, schedule)) {}
Executor::~Executor() = default;

View Executor::value(Value value, int32_t layer, int32_t micro_batch) const {
  const BufferId id = impl_->values.find(value, layer, micro_batch);
  const Port& port = impl_->schedule.buffers[static_cast<size_t>(id)].port;
  return {impl_->address(id), port.dtype, port.rows(impl_->schedule.tokens), port.cols};
}

double& Executor::scalar(Value v, int32_t micro_batch) const {
  return *value(v, -1, micro_batch).as<double>();
}

bool Executor::run(std::span<const BatchShape> batches, const RunOptions& options) {
  Impl& impl = *impl_;
  const Schedule& schedule = impl.schedule;
  HEARTH_CHECK(static_cast<int64_t>(batches.size()) == schedule.micro_batches,
               "executor: number of micro-batches");
  HEARTH_CHECK(options.order.empty() || schedule.streams.size() == 1,
               "executor: another order needs one stream");
  for (auto& event : impl.events) {
    if (event) event->reset();
  }
  std::vector<int> uses_left(schedule.buffers.size());
  if (options.poison) {
    for (const Task& task : schedule.tasks) {
      for (const BufferUse& use : task.uses) ++uses_left[static_cast<size_t>(use.buffer)];
    }
  }
  const auto poison_finished = [&](const Task& task) {
    for (const BufferUse& use : task.uses) {
      const Buffer& buffer = schedule.buffers[static_cast<size_t>(use.buffer)];
      const ValueInfo& info = info_of(buffer.port.value);
      if (--uses_left[static_cast<size_t>(use.buffer)] > 0 || info.kept || info.given) continue;
      std::memset(impl.address(use.buffer), 0xff, buffer.bytes);
    }
  };

  std::mutex mutex;  // of trace and error
  std::exception_ptr error;
  std::atomic<bool> ended{false}, abandoned{false}, updating{false};
  const double start = now();
  const auto run_stream = [&](size_t s) {
    Stream& stream = *impl.parts.workspace.streams[s];
    const std::vector<TaskId>& list = options.order.empty() ? impl.by_stream[s] : options.order;
    for (const TaskId id : list) {
      const Task& task = schedule.tasks[static_cast<size_t>(id)];
      Event* event = impl.events[static_cast<size_t>(id)].get();
      try {
        for (const TaskId before : impl.waits[static_cast<size_t>(id)]) {
          impl.parts.device.wait(stream, *impl.events[static_cast<size_t>(before)]);
        }
        const bool update = task.kind == TaskKind::update;
        if (update && options.before_update && !ended && !abandoned) options.before_update(task);
        if (options.abandon && !updating && !abandoned && options.abandon()) abandoned = true;
        if (update && !abandoned) updating = true;
        if (!ended && !abandoned) {
          const double begin = now() - start;
          impl.run_task(id, batches);
          if (options.trace != nullptr) {
            const std::lock_guard lock(mutex);
            options.trace->push_back({id, begin, now() - start});
          }
          if (options.poison) poison_finished(task);
        }
        if (event != nullptr) impl.parts.device.record(*event, stream);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        ended = true;
        if (event != nullptr) impl.parts.device.fail(*event, std::current_exception());
      }
    }
    stream.synchronize();
  };
  if (options.trace != nullptr) options.trace->clear();
  impl.threads.run(run_stream);
  if (error) std::rethrow_exception(error);
  if (options.trace != nullptr) {
    std::sort(options.trace->begin(), options.trace->end(),
              [](const TaskTime& a, const TaskTime& b) { return a.begin < b.begin; });
  }
  return !abandoned;
}

}  // namespace hearth
