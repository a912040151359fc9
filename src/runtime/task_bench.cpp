#include "runtime/task_bench.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/pool.h"
#include "runtime/bench_memory.h"
#include "runtime/task_inputs.h"

namespace hearth {
namespace {

constexpr size_t kStagingBytes = size_t{1} << 20;
constexpr size_t kAlignment = 256;  // of values, as in a schedule

ModelSpec spec_of(const BenchSubject& subject, const TaskSize& size) {
  const ModelSpec& spec = subject.model.spec;
  return size.experts > 0 ? with_experts(spec, size.experts) : spec;
}

TaskShape shape_of(const BenchSubject& subject, const BenchPlace& place, const TaskSize& size,
                   const ModelSpec& spec) {
  TaskShape shape{spec, subject.settings, subject.model.table};
  shape.phase = size.phase;
  shape.layer = size.layer;
  shape.tokens = size.tokens;
  shape.longest = std::min(subject.longest, std::max<int64_t>(size.tokens, 1));
  shape.place = place.place;
  // Only if ranks share the experts does it have anything to do.
  if (size.kind == TaskKind::combine && size.phase == Phase::backward) shape.ranks.ranks = 2;
  return shape;
}

bool on_host(const Port& port) { return info_of(port.value).host; }

bool has_space(const Device& device, SpaceKind kind) {
  const std::vector<MemorySpace> spaces = device.spaces();
  return std::any_of(spaces.begin(), spaces.end(),
                     [&](const MemorySpace& s) { return s.kind == kind; });
}

}  // namespace

/// A task with memory for its values.
struct TaskBench::Bound {
  const Body& body;
  ModelSpec spec;
  TaskSize size;
  int64_t longest = 1;
  std::vector<BoundPort> ports;
  std::vector<BlockUse> blocks;
  std::vector<std::vector<double>> of_host;  // values that are always on the host
};

TaskMemory task_memory(const BenchSubject& subject, const BenchPlace& place, const TaskSize& size) {
  const ModelSpec spec = spec_of(subject, size);
  const TaskShape shape = shape_of(subject, place, size, spec);
  const Body& body = body_of(size.kind);
  TaskMemory memory;
  for (const Port& port : body.ports(shape)) {
    if (!on_host(port)) memory.values += align_up(port.bytes(size.tokens), kAlignment);
  }
  memory.scratch = body.scratch(shape, place.ops);
  return memory;
}

uint64_t parameter_bytes(const BenchSubject& subject) {
  uint64_t sum = 0;
  for (const ParameterArena& a : parameter_arenas(subject.model.table, subject.policy)) {
    sum += a.bytes;
  }
  return sum;
}

int64_t swept_parameters(const BenchSubject& subject, const BenchPlace& place,
                         const TaskSize& size) {
  const ModelSpec spec = spec_of(subject, size);
  const ParameterTable& table = subject.model.table;
  int64_t sum = 0;
  for (const BlockUse& use : body_of(size.kind).blocks(shape_of(subject, place, size, spec))) {
    for (BlockId b = use.begin; b < use.end; ++b) {
      for (TensorId id = table.block(b).begin; id < table.block(b).end; ++id) {
        if (table.tensor(id).trainable) sum += table.tensor(id).size();
      }
    }
  }
  return sum;
}

TaskBench::TaskBench(const BenchPlace& place, BenchSubject& subject,
                     std::span<const TaskSize> sizes)
    : place_(place), subject_(subject) {
  uint64_t values = kAlignment;
  StreamOptions options;
  options.name = "measurement";
  options.workers = place.workers;
  options.cores = place.cores;
  for (const TaskSize& size : sizes) {
    const TaskMemory memory = task_memory(subject, place, size);
    values = std::max(values, memory.values);
    options.scratch_bytes = std::max(options.scratch_bytes, memory.scratch.shared);
    options.worker_scratch_bytes =
        std::max(options.worker_scratch_bytes, memory.scratch.per_worker);
  }
  Device& device = place.device;
  if (device.host_reaches()) between_.resize(place.between_bytes);
  stream_ = device.create_stream(options);
  values_ = device.reserve("measured values", place.memory, values);
  const SpaceKind pinned = has_space(device, SpaceKind::host) ? SpaceKind::host : SpaceKind::pinned;
  staging_ = device.reserve("measurement", pinned, kStagingBytes);

  std::vector<PlaceArenas> addresses(static_cast<size_t>(place.place) + 1, PlaceArenas{});
  for (const ParameterArena& a : parameter_arenas(subject.model.table, subject.policy)) {
    arenas_.push_back(device.reserve(a.name, place.memory, a.bytes));
    std::byte* const data = arenas_.back()->data();
    addresses[static_cast<size_t>(a.place)][static_cast<size_t>(a.role)] = data;
    // Weights as stored may be of any type, of which a pattern of bytes makes small numbers, too.
    if (a.role == CopyRole::moment2) {
      fill_positive(device, *stream_, data, a.bytes);
    } else {
      const bool f32 = a.role != CopyRole::working && a.role != CopyRole::stored;
      fill_small(device, *stream_, data, a.bytes, f32 ? DType::f32 : DType::bf16);
    }
  }
  bind_parameters(subject.model.table, subject.policy, addresses);
  stream_->synchronize();
}

TaskBench::~TaskBench() { unbind_thread(); }

TaskBench::Bound TaskBench::bind(const TaskSize& size) {
  Bound bound{body_of(size.kind), spec_of(subject_, size), size, 1, {}, {}, {}};
  const TaskShape shape = shape_of(subject_, place_, size, bound.spec);
  bound.longest = shape.longest;
  bound.blocks = bound.body.blocks(shape);
  size_t at = 0;
  for (const Port& port : bound.body.ports(shape)) {
    if (on_host(port)) {
      bound.of_host.emplace_back(1, 0.0);
      bound.ports.push_back({port, reinterpret_cast<std::byte*>(bound.of_host.back().data())});
      continue;
    }
    bound.ports.push_back({port, values_->data() + at});
    at += align_up(port.bytes(size.tokens), kAlignment);
  }
  HEARTH_CHECK(at <= values_->size(), "task bench: a task that was not planned");
  return bound;
}

/// The values that the task reads. Not `all`: those that it changes, so that repeats do not compute
/// on ever smaller numbers.
void TaskBench::give(const Bound& bound, bool all) {
  Device& device = place_.device;
  for (const BoundPort& b : bound.ports) {
    const bool floats = b.port.dtype != DType::i32 && b.port.dtype != DType::f64;
    if (floats) {
      if (all || b.port.access == Access::update) {
        fill_small(device, *stream_, b.data, b.port.bytes(bound.size.tokens), b.port.dtype);
      }
      continue;
    }
    if (!all) continue;
    const std::vector<std::byte> bytes =
        task_input(b.port, bound.spec, bound.size.tokens, bound.longest);
    if (on_host(b.port) || device.host_reaches()) {
      if (!bytes.empty()) std::memcpy(b.data, bytes.data(), bytes.size());
      continue;
    }
    for (size_t done = 0; done < bytes.size(); done += kStagingBytes) {
      const size_t n = std::min(kStagingBytes, bytes.size() - done);
      std::memcpy(staging_->data(), bytes.data() + done, n);
      device.copy(*stream_, b.data + done, staging_->data(), n);
      stream_->synchronize();
    }
  }
  stream_->synchronize();
}

/// What other tasks of a step do to the caches.
void TaskBench::use_caches() {
  constexpr size_t kLine = 64;
  for (size_t i = 0; i < between_.size(); i += kLine) between_[i] ^= std::byte{1};
}

double TaskBench::time_of(const Bound& bound) {
  const BatchShape batch{bound.size.tokens, sequences_of(bound.size.tokens, bound.longest), 0};
  const BodyContext context{place_.ops,
                            *stream_,
                            bound.spec,
                            subject_.settings,
                            subject_.model.table,
                            Pass::train,
                            bound.size.phase,
                            bound.size.layer,
                            batch,
                            bound.ports,
                            bound.blocks,
                            place_.place};
  Device& device = place_.device;
  if (!device.has_own_clock()) {
    const double start = place_.clock();
    bound.body.run(context);
    stream_->synchronize();
    return place_.clock() - start;
  }
  const auto begin = device.create_event(true), end = device.create_event(true);
  device.record(*begin, *stream_);
  bound.body.run(context);
  device.record(*end, *stream_);
  stream_->synchronize();
  return device.seconds_between(*begin, *end);
}

std::vector<double> TaskBench::run(const TaskSize& size, int times, bool warm,
                                   const std::function<bool()>& go_on) {
  const Bound bound = bind(size);
  give(bound, true);
  if (warm) {
    time_of(bound);
    give(bound, false);
  }
  std::vector<double> seconds;
  for (int i = 0; i < times; ++i) {
    if (i > 0 && go_on && !go_on()) break;
    if (i > 0) give(bound, false);
    use_caches();
    seconds.push_back(time_of(bound));
  }
  place_.device.check();
  return seconds;
}

}  // namespace hearth
