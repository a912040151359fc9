#include "runtime/executor.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "base/raised_error.h"
#include "layers/divided.h"
#include "layers/split.h"
#include "plan/idle_tasks.h"
#include "plan/loader/slot_plan.h"
#include "runtime/task_times.h"

namespace hearth {

namespace {

/// Which buffer of the host holds a value: the first one made for it. The layer and the micro-batch
/// matter only if the value belongs to one.
class ValueIndex {
 public:
  explicit ValueIndex(const Schedule& s) {
    for (size_t i = 0; i < s.buffers.size(); ++i) {
      const Buffer& b = s.buffers[i];
      if (!s.is_host(b.place)) continue;
      ids_.emplace(key_of(b.port.value, b.layer, b.micro_batch), static_cast<BufferId>(i));
    }
  }
  BufferId find(Value value, int32_t layer, int32_t micro_batch) const {
    const auto it = ids_.find(key_of(value, layer, micro_batch));
    HEARTH_CHECK(it != ids_.end(), "executor: no such value in the schedule");
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

std::vector<Device*> devices_of(const ExecutorParts& parts) {
  std::vector<Device*> devices;
  for (const PlaceParts& place : parts.places) devices.push_back(&place.device);
  return devices;
}

std::vector<PlaceCosts> costs_of(const ExecutorParts& parts) {
  std::vector<PlaceCosts> costs;
  for (const PlaceParts& place : parts.places) {
    HEARTH_CHECK(!place.costs.table || place.device.host_reaches(),
                 "executor: only the host and virtual devices can be paced");
    costs.push_back(place.costs);
  }
  return costs;
}

/// Whether the step is abandoned or its updates have begun. Whichever comes first wins.
class StepFate {
 public:
  bool abandoned() const { return state_ == State::abandoned; }
  bool open() const { return state_ == State::open; }
  void abandon() { become(State::abandoned); }
  void begin_updates() { become(State::updating); }

 private:
  enum class State : uint8_t { open, updating, abandoned };
  void become(State next) {
    State expected = State::open;
    state_.compare_exchange_strong(expected, next);
  }
  std::atomic<State> state_{State::open};
};

/// The rows [first, second) of the experts of a place.
std::pair<size_t, size_t> part_rows(Place place, int64_t experts, const std::byte* offsets,
                                    const BoundPort& split) {
  const SplitView view(ConstView(split.data, DType::i32, split.port.rows(0), 1), experts);
  const auto [begin, end] = view.positions(place);
  const auto* of = reinterpret_cast<const int32_t*>(offsets);
  return {static_cast<size_t>(of[begin]), static_cast<size_t>(of[end])};
}

/// Overwrites buffers after their last use, so that a late read is noticed. For one thread.
class Poison {
 public:
  explicit Poison(const Schedule& schedule) : schedule_(schedule), left_(schedule.buffers.size()) {
    for (const Task& task : schedule.tasks) {
      for (const BufferUse& use : task.uses) ++left_[static_cast<size_t>(use.buffer)];
    }
  }
  template <class Address>
  void after(const Task& task, const Address& address) {
    for (const BufferUse& use : task.uses) {
      const Buffer& buffer = schedule_.buffers[static_cast<size_t>(use.buffer)];
      const ValueInfo& info = info_of(buffer.port.value);
      if (--left_[static_cast<size_t>(use.buffer)] > 0) continue;
      if (schedule_.is_host(buffer.place) && (info.kept || info.given)) continue;
      std::memset(address(use.buffer), 0xff, buffer.bytes);
    }
  }

 private:
  const Schedule& schedule_;
  std::vector<int> left_;
};

}  // namespace

struct Executor::Impl {
  ExecutorParts parts;
  const Schedule& schedule;
  ValueIndex values;
  std::vector<std::vector<BoundPort>> ports;  // of each task
  const IdleTasks idle;
  std::vector<std::vector<TaskId>> waits;        // of each task
  enum class Idle : uint8_t { no, yes, ended };  // ended: so has all that the task follows
  std::vector<std::atomic<Idle>> is_idle;        // by task, once its split is decided
  std::vector<std::unique_ptr<Event>> events;    // of tasks that others wait for
  std::vector<std::vector<TaskId>> by_stream;
  TaskTimes times;
  Pacer pacer;
  std::vector<std::unique_ptr<TravellingWeights>> travelling;  // by place; null: all live there
  std::map<TaskId, std::vector<TaskId>> foreseen;  // of decisions: the tasks of experts in forward
  std::map<int32_t, std::vector<TaskId>> decided;  // all of these, by layer

  Impl(const ExecutorParts& p, const Schedule& s)
      : parts(p),
        schedule(s),
        values(s),
        idle(s),
        waits(idle.waits(s)),
        is_idle(s.tasks.size()),
        events(s.tasks.size()),
        by_stream(s.streams.size()),
        times(s, devices_of(p), p.workspace, p.clock),
        pacer(s, costs_of(parts), p.spec, p.table, p.clock) {
    HEARTH_CHECK(s.arena_bytes.size() <= p.places.size() &&
                     s.arena_bytes.size() <= p.workspace.arenas.size() &&
                     s.streams.size() <= p.workspace.streams.size(),
                 "executor: workspace too small for the schedule");
    for (size_t place = 0; place < s.arena_bytes.size(); ++place) {
      const Arena* arena = p.workspace.arenas[place].get();
      HEARTH_CHECK(s.arena_bytes[place] <= (arena == nullptr ? 0 : arena->size()),
                   "executor: workspace too small for the schedule");
    }
    for (size_t place = 0; place < s.arena_bytes.size(); ++place) {
      const PlaceParts& of = p.places[place];
      travelling.push_back(of.residency == nullptr ? nullptr
                                                   : std::make_unique<TravellingWeights>(
                                                         *of.residency, p.table, s,
                                                         static_cast<Place>(place), of.loads));
    }
    for (TaskId t = 0; t < std::ssize(s.tasks); ++t) {
      const Task& decision = s.tasks[static_cast<size_t>(t)];
      if (decision.kind != TaskKind::decide) continue;
      for (TaskId later = t + 1; later < std::ssize(s.tasks); ++later) {
        const Task& task = s.tasks[static_cast<size_t>(later)];
        if (s.is_decided(task) && task.phase == Phase::forward && task.layer == decision.layer &&
            decision.rows.begin <= task.rows.begin && task.rows.end <= decision.rows.end) {
          foreseen[t].push_back(later);
        }
      }
    }
    for (TaskId t = 0; t < std::ssize(s.tasks); ++t) {
      const Task& task = s.tasks[static_cast<size_t>(t)];
      if (s.is_decided(task) && task.phase == Phase::forward) decided[task.layer].push_back(t);
    }
    for (size_t t = 0; t < s.tasks.size(); ++t) {
      const Task& task = s.tasks[t];
      by_stream[static_cast<size_t>(task.stream)].push_back(static_cast<TaskId>(t));
      std::vector<BoundPort>& bound = ports.emplace_back();
      size_t count = 0;
      for (size_t use = 0; use < task.uses.size(); use += count) {
        count = task.uses_of(task.uses[use].port.value);
        std::byte* const first = address(task.uses[use].buffer);
        const size_t stride =
            count == 1 ? 0 : static_cast<size_t>(address(task.uses[use + 1].buffer) - first);
        bound.push_back({task.uses[use].port, first, stride});
      }
      for (const TaskId before : waits[t]) need_event(before);
      const TaskId decision = idle.decision(static_cast<TaskId>(t));
      if (decision >= 0) need_event(decision);
    }
  }

  void need_event(TaskId id) {
    auto& event = events[static_cast<size_t>(id)];
    if (!event) event = device_of(schedule.tasks[static_cast<size_t>(id)]).create_event();
  }

  std::byte* address(BufferId id) const {
    const Buffer& buffer = schedule.buffers[static_cast<size_t>(id)];
    const auto& arena = parts.workspace.arenas[static_cast<size_t>(buffer.place)];
    return arena == nullptr ? nullptr : arena->data() + buffer.address;
  }
  Device& device_of(const Task& task) const {
    return parts.places[static_cast<size_t>(task.place)].device;
  }
  Stream& stream_of(const Task& task) const {
    return *parts.workspace.streams[static_cast<size_t>(task.stream)];
  }

  /// Those of the task's micro-batches; none: empty.
  static std::span<const BatchShape> batches_of(const Task& task,
                                                std::span<const BatchShape> batches) {
    if (task.rows.none()) return {};
    return batches.subspan(static_cast<size_t>(task.rows.begin),
                           static_cast<size_t>(task.rows.count()));
  }

  /// The bytes [first, second) that a copy carries, in one piece or two: the rows that the micro-batch
  /// has, of a part its rows, which the offsets and the split on the host tell.
  std::array<std::pair<size_t, size_t>, 2> copied_ranges(const Task& task,
                                                         std::span<const BoundPort> bound,
                                                         int64_t tokens) const {
    const Port& port = bound[0].port;
    if (info_of(port.value).of_columns) {
      const DividedView divided(ConstView(bound[2].data, DType::i32, DividedView::kSize, 1));
      const size_t bytes =
          divided.any()
              ? divided_bytes(parts.table, task.layer, divided.width, divided_part_of(port.value),
                              policy_of(parts.settings, schedule.pass == Pass::train))
              : 0;
      return {{{0, bytes}, {0, 0}}};
    }
    if (task.part.all()) return {{{0, port.bytes(tokens)}, {0, 0}}};
    const size_t row = static_cast<size_t>(port.cols) * size_of(port.dtype);
    const auto rows = [&](size_t begin, size_t end) { return std::pair(begin * row, end * row); };
    if (!task.part.guests) {
      const auto [begin, end] =
          part_rows(task.part.place, parts.spec.experts, bound[2].data, bound[3]);
      return {rows(begin, end), {0, 0}};
    }
    const auto* const offsets = reinterpret_cast<const int32_t*>(bound[2].data);
    const auto at = [&](int64_t i) { return static_cast<size_t>(offsets[i]); };
    const ExpertRanks ranks = parts.ranks->experts(task.layer);
    const auto [first, last] = ranks.own(parts.spec.experts);
    if (task.part.away()) {  // before this rank's experts, and behind them
      return {rows(0, at(first)), rows(at(last), at(parts.spec.experts))};
    }
    return {rows(0, at((task.part.place + 1) * (last - first + 1) - 1)), {0, 0}};
  }

  /// When it returns, the split has been made that says whether the task is idle.
  void know_idle(TaskId id) {
    const TaskId decision = idle.decision(id);
    if (decision >= 0) events[static_cast<size_t>(decision)]->synchronize();
  }

  /// Lets a stream wait for a task. Behind one that is idle, all that it follows has ended when the call
  /// returns: nothing is recorded that a stream of a device could wait for. `reached`: the same holds of
  /// any task.
  void await(TaskId before, Device& device, Stream& stream, bool reached) {
    Event& earlier = *events[static_cast<size_t>(before)];
    if (idle.decision(before) >= 0 && !earlier.reached()) {
      know_idle(before);
      std::atomic<Idle>& state = is_idle[static_cast<size_t>(before)];
      if (state == Idle::ended) return;
      if (state == Idle::yes) {
        for (const TaskId of : waits[static_cast<size_t>(before)]) {
          await(of, device, stream, true);
        }
        state = Idle::ended;
        return;
      }
    }
    device.wait(stream, earlier);
    if (reached) earlier.synchronize();
  }

  /// Behind a decision: tasks of the host's part are idle if it gives the host no token.
  void find_idle(TaskId decision) {
    const std::span<const TaskId> tasks = idle.of(decision);
    if (tasks.empty() || host_has_tokens(decision)) return;
    for (const TaskId of : tasks) is_idle[static_cast<size_t>(of)] = Idle::yes;
  }

  bool host_has_tokens(TaskId decision) const {
    const BoundPort* const counts = port_of(decision, Value::router_counts);
    if (counts == nullptr) return true;  // by no rule
    const BoundPort& split = *port_of(decision, Value::split);
    const SplitView view(ConstView(split.data, DType::i32, split.port.rows(0), 1),
                         parts.spec.experts);
    const auto [begin, end] = view.positions(idle.place(decision));
    const int32_t segments = schedule.tasks[static_cast<size_t>(decision)].rows.count();
    for (int32_t s = 0; s < segments; ++s) {
      const auto* const of =
          reinterpret_cast<const double*>(counts->data + static_cast<size_t>(s) * counts->stride);
      for (int32_t i = begin; i < end; ++i) {
        if (of[view.expert(i)] > 0) return true;
      }
    }
    return false;
  }

  /// Null: the task has no such value.
  const BoundPort* port_of(TaskId id, Value value) const {
    const std::vector<BoundPort>& bound = ports[static_cast<size_t>(id)];
    const auto found =
        std::ranges::find(bound, value, [](const BoundPort& b) { return b.port.value; });
    return found == bound.end() ? nullptr : &*found;
  }

  void run_task(TaskId id, std::span<const BatchShape> batches) {
    const auto index = static_cast<size_t>(id);
    const Task& task = schedule.tasks[index];
    if (is_idle[index] != Idle::no) {
      times.begin(id);
      times.end(id, 0);
      return;
    }
    const std::span<const BatchShape> of_task = batches_of(task, batches);
    for (const BatchShape& each : of_task) {
      HEARTH_CHECK(each.tokens <= schedule.tokens, "executor: micro-batch over its bound");
    }
    if (task.kind == TaskKind::copy) {
      times.begin(id);
      times.end(id, copy(task, ports[index], of_task));
      return;
    }
    prepare_homes(task);
    compute(id, of_task);
    foresee(id);
    find_idle(id);
    times.end(id, 0);
    if (task.kind != TaskKind::update) return;
    for (const auto& of : travelling) {
      if (of) of->updated(task);
    }
  }

  /// Returns the bytes that it carries.
  uint64_t copy(const Task& task, std::span<const BoundPort> bound,
                std::span<const BatchShape> batches) const {
    const int64_t tokens = batches.empty() ? 0 : batches.front().tokens;
    uint64_t bytes = 0;
    for (const auto& [begin, end] : copied_ranges(task, bound, tokens)) {
      if (begin == end) continue;
      device_of(task).copy(stream_of(task), bound[1].data + begin, bound[0].data + begin,
                           end - begin);
      bytes += end - begin;
    }
    return bytes;
  }

  /// Runs the body, in turns if the task's blocks have to be loaded and do not fit at one time. A turn
  /// begins when its blocks are there; from then on it is held if its place is paced.
  void compute(TaskId id, std::span<const BatchShape> batches) {
    const auto index = static_cast<size_t>(id);
    const Task& task = schedule.tasks[index];
    const BatchShape batch = batches.empty() ? BatchShape{} : batches.front();
    TravellingWeights* const away = travelling[static_cast<size_t>(task.place)].get();
    TaskLists& lists = *parts.workspace.lists[static_cast<size_t>(task.stream)];
    const std::vector<BlockId> experts = decided_experts(id);
    if (away != nullptr && away->is_decided(id)) away->choose(id, experts);
    const bool adds = away == nullptr && !experts.empty() && adds_gradients(task);
    for (const auto& of : travelling) {
      if (adds && of) of->begin_adding(experts);
    }
    const int32_t turns = away == nullptr ? 1 : away->turns(id);
    for (int32_t turn = 0; turn < turns; ++turn) {
      const double asked = parts.clock.now();
      const ExpertWave wave =
          away == nullptr ? ExpertWave{} : away->begin(id, turn, stream_of(task));
      if (turn == 0) times.begin(id);  // before what the pacer counts from
      const double begin = parts.clock.now();
      if (turn > 0) times.waited(id, begin - asked);
      const BodyContext context{parts.places[static_cast<size_t>(task.place)].ops,
                                stream_of(task),
                                parts.spec,
                                parts.settings,
                                away == nullptr ? parts.table : away->table(),
                                schedule.pass,
                                task.phase,
                                task.layer,
                                batch,
                                ports[index],
                                task.blocks,
                                task.place,
                                task.part,
                                batches,
                                wave,
                                parts.splits,
                                parts.ranks,
                                lists.of_next_task()};
      body_of(task.kind).run(context);
      if (pacer.paces(id)) pacer.hold(id, begin, batches, ports[index], wave);
      if (away != nullptr) away->end(stream_of(task));
    }
    for (const auto& of : travelling) {
      if (adds && of) of->added(experts);
    }
  }

  /// The experts that a split gives to the task; of a join the divided one. None if it is not of that
  /// kind.
  std::vector<BlockId> decided_experts(TaskId id) const {
    const Task& task = schedule.tasks[static_cast<size_t>(id)];
    std::vector<BlockId> experts;
    const bool joins = task.kind == TaskKind::join;
    if (!schedule.is_decided(task) && !joins) return experts;
    const std::vector<BoundPort>& bound = ports[static_cast<size_t>(id)];
    const auto value = [&](Value of) {
      const auto found = std::ranges::find_if(
          bound, [of](const BoundPort& port) { return port.port.value == of; });
      return ConstView(found->data, DType::i32, found->port.rows(0), 1);
    };
    const SplitView view(value(Value::split), parts.spec.experts);
    const BlockId first = parts.table.find_block(BlockKind::expert, task.layer, 0);
    if (joins) {
      const DividedView divided(value(Value::divided));
      if (divided.any()) experts.push_back(first + view.expert(divided.position));
      return experts;
    }
    const auto [begin, end] = view.positions(task.part.place);
    for (int32_t i = begin; i < end; ++i) experts.push_back(first + view.expert(i));
    return experts;
  }

  TravellingWeights* away_of(TaskId id) const {
    return travelling[static_cast<size_t>(schedule.tasks[static_cast<size_t>(id)].place)].get();
  }

  /// A split tells the devices which experts they will compute before their tasks begin, and which
  /// experts of later layers its rule foretells for the same rows. A task of its own tells which experts
  /// the rule foretells for its layer.
  void foresee(TaskId id) const {
    const Task& asks = schedule.tasks[static_cast<size_t>(id)];
    if (asks.kind == TaskKind::foretell) {
      return ask_for(parts.splits->foretold_here(asks.layer), asks.rows);
    }
    const auto found = foreseen.find(id);
    if (found == foreseen.end()) return;
    for (const TaskId of : found->second) {
      if (TravellingWeights* const away = away_of(of)) away->foresee(of, decided_experts(of));
    }
    ask_for(parts.splits->foretold_behind(asks.layer), asks.rows);
  }

  /// For the tasks that compute micro-batches of `rows`.
  void ask_for(std::span<const ForetoldExperts> foretold, const RowRange& rows) const {
    for (const ForetoldExperts& each : foretold) {
      for_foretold(each, [&](TaskId of, TravellingWeights& away, std::span<const BlockId> experts) {
        const RowRange& own = schedule.tasks[static_cast<size_t>(of)].rows;
        if (rows.begin <= own.begin && own.end <= rows.end) away.foretell(of, experts);
      });
    }
  }

  /// Before the first task.
  void expect_foretold() const {
    if (parts.splits == nullptr) return;
    for (const ForetoldExperts& of : parts.splits->foretold()) {
      for_foretold(of, [](TaskId task, TravellingWeights& away, std::span<const BlockId> experts) {
        away.expect(task, experts);
      });
    }
  }

  /// f(task, weights of its device, experts), of the tasks of the layer's experts at devices.
  template <class F>
  void for_foretold(const ForetoldExperts& of, const F& f) const {
    const auto tasks = decided.find(of.layer);
    if (tasks == decided.end()) return;
    std::vector<BlockId> experts;
    const BlockId first = parts.table.find_block(BlockKind::expert, of.layer, 0);
    for (const int32_t expert : of.experts) experts.push_back(first + expert);
    for (const TaskId task : tasks->second) {
      if (TravellingWeights* const away = away_of(task)) f(task, *away, experts);
    }
  }

  /// Norms read gradients at home, and updates change homes: copies elsewhere are told.
  void prepare_homes(const Task& task) const {
    for (const auto& of : travelling) {
      if (of && task.kind == TaskKind::norm) of->bring_home(task.blocks);
      if (of && task.kind == TaskKind::update) of->begin_update(task);
    }
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

const std::vector<PacedTasks>& Executor::paced() const { return impl_->pacer.counts(); }

Executor::LoadedExperts Executor::loaded_experts() const {
  LoadedExperts sum;
  for (size_t t = 0; t < impl_->schedule.tasks.size(); ++t) {
    const Task& task = impl_->schedule.tasks[t];
    const TravellingWeights* const away = impl_->travelling[static_cast<size_t>(task.place)].get();
    if (away == nullptr || task.kind != TaskKind::experts) continue;
    using Came = TravellingWeights::Came;
    const std::span<const Came> came_before = away->came_before(static_cast<TaskId>(t));
    for (int32_t m = task.rows.begin; m < task.rows.end; ++m) {
      const double* const tokens = value(Value::router_counts, task.layer, m).as<double>();
      for (size_t e = 0; e < came_before.size(); ++e) {
        if (came_before[e] == Came::not_here) continue;
        sum.tokens += tokens[e];
        if (came_before[e] == Came::before) sum.came_before += tokens[e];
      }
    }
  }
  return sum;
}

double& Executor::scalar(Value v, int32_t micro_batch) const {
  return *value(v, -1, micro_batch).as<double>();
}

bool Executor::run(std::span<const BatchShape> batches, const RunOptions& options) {
  Impl& impl = *impl_;
  const Schedule& schedule = impl.schedule;
  HEARTH_CHECK(static_cast<int64_t>(batches.size()) == schedule.micro_batches,
               "executor: number of micro-batches");
  HEARTH_CHECK(!options.poison || !options.order.empty() || schedule.streams.size() == 1,
               "executor: poison needs one thread");
  for (auto& event : impl.events) {
    if (event) event->reset();
  }
  for (auto& of : impl.is_idle) of = Impl::Idle::no;
  std::optional<Poison> poison;
  if (options.poison) poison.emplace(schedule);

  std::mutex mutex;     // of the error
  std::mutex updating;  // of before_update
  std::exception_ptr error;
  std::atomic<bool> ended{false};
  StepFate fate;
  const auto fail = [&](Event* event, Device& device) {
    const std::lock_guard lock(mutex);
    if (!error) {
      error = std::current_exception();
      if (options.failed) as_error(error, options.failed);
    }
    ended = true;
    if (event != nullptr) device.fail(*event, std::current_exception());
  };
  const auto run_one = [&](TaskId id) {
    const Task& task = schedule.tasks[static_cast<size_t>(id)];
    Stream& stream = impl.stream_of(task);
    Device& device = impl.device_of(task);
    Event* event = impl.events[static_cast<size_t>(id)].get();
    try {
      // The host reads how much it carries when it issues it.
      const bool reads_sizes = (task.kind == TaskKind::copy && task.uses.size() > 2 &&
                                !(task.part.all() && schedule.may_be_idle(task))) ||
                               task.kind == TaskKind::send_rows ||
                               task.kind == TaskKind::return_rows;
      impl.know_idle(id);
      for (const TaskId before : impl.waits[static_cast<size_t>(id)]) {
        impl.await(before, device, stream, reads_sizes);
      }
      const bool update = task.kind == TaskKind::update || task.kind == TaskKind::give;
      const bool is_due = update && schedule.rotates;
      if (update && options.before_update && !ended && (is_due || !fate.abandoned())) {
        const std::lock_guard lock(updating);
        options.before_update(task);
      }
      if (options.abandon && fate.open() && options.abandon()) fate.abandon();
      if (update && !is_due) fate.begin_updates();
      if (!ended && (is_due || !fate.abandoned())) {
        impl.run_task(id, batches);
        if (poison) poison->after(task, [&](BufferId b) { return impl.address(b); });
      }
      if (event != nullptr) device.record(*event, stream);
    } catch (...) {
      fail(event, device);
    }
  };
  // Also reports work that failed on a device after its call had returned.
  const auto finish_stream = [&](size_t s) {
    const Place place = schedule.streams[s].place;
    Device& device = impl.parts.places[static_cast<size_t>(place)].device;
    try {
      impl.parts.workspace.streams[s]->synchronize();
      device.check();
    } catch (...) {
      fail(nullptr, device);
    }
  };
  for (const auto& of : impl.travelling) {
    if (of) of->begin_step();
  }
  impl.expect_foretold();
  for (const auto& of : impl.travelling) {
    if (of) of->begin_loads();
  }
  impl.pacer.start();
  if (options.trace != nullptr) options.trace->clear();
  impl.times.start(options.trace != nullptr);
  if (options.order.empty()) {
    const auto run_stream = [&](size_t s) {
      for (const TaskId id : impl.by_stream[s]) run_one(id);
      finish_stream(s);
    };
    impl.parts.workspace.threads->run(schedule.streams.size(), std::cref(run_stream));
  } else {
    for (const TaskId id : options.order) run_one(id);
    for (size_t s = 0; s < schedule.streams.size(); ++s) finish_stream(s);
  }
  if (error) std::rethrow_exception(error);
  if (options.trace != nullptr) impl.times.fill(*options.trace);
  return !fate.abandoned();
}

}  // namespace hearth
