#include "doctor/link_measurement.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <latch>
#include <memory>
#include <thread>

#include "base/stopwatch.h"

namespace hearth {
namespace {

/// Moves bytes over a link in pieces. The pieces are done when it returns, and it says how many
/// bytes they were.
using Mover = std::function<uint64_t()>;

/// A link's movers, one thread each.
struct Traffic {
  std::vector<Mover> movers;        // none: there was no time for its buffers
  double piece_bytes = 0;           // of all movers
  double latency = 0, passing = 0;  // seconds of a piece at nominal speed; 0: unknown
};

/// The least seconds that a run of these links takes: each moves a piece to warm up and another one.
/// Links may share a root complex or the machine's cores, so their pieces may pass one after the
/// other.
double least_seconds(const std::vector<const Traffic*>& links) {
  double latency = 0, passing = 0;
  for (const Traffic* link : links) {
    latency = std::max(latency, link->latency);
    passing += link->passing;
  }
  return 2 * (latency + passing);
}

/// Runs all traffic at once for some seconds: bytes per second of each.
std::vector<double> run_at_once(const std::vector<const Traffic*>& links, double seconds) {
  struct Result {
    double rate = 0;
    std::exception_ptr error;
  };
  std::vector<std::vector<Result>> results(links.size());
  std::vector<std::thread> threads;
  size_t count = 0;
  for (const Traffic* link : links) count += link->movers.size();
  std::latch ready(static_cast<std::ptrdiff_t>(count));
  for (size_t i = 0; i < links.size(); ++i) {
    results[i].resize(links[i]->movers.size());
    for (size_t m = 0; m < results[i].size(); ++m) {
      threads.emplace_back([&, i, m] {
        Result& result = results[i][m];
        bool warm = false;
        try {
          links[i]->movers[m]();  // warms the link
          warm = true;
          ready.arrive_and_wait();
          const Stopwatch watch;
          uint64_t bytes = 0;
          do {
            bytes += links[i]->movers[m]();
          } while (watch.seconds() < seconds);
          result.rate = static_cast<double>(bytes) / watch.seconds();
        } catch (...) {
          result.error = std::current_exception();
          if (!warm) ready.count_down();
        }
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<double> rates;
  for (const auto& of_link : results) {
    double rate = 0;
    for (const Result& result : of_link) {
      if (result.error) std::rethrow_exception(result.error);
      rate += result.rate;
    }
    rates.push_back(rate);
  }
  return rates;
}

constexpr double kLongest = 0.3;  // seconds for each measurement; rates settle sooner

constexpr int kRuns = 3;

// Of the time, for making buffers resident: a busy machine can need seconds for a few hundred MiB.
constexpr double kBufferShare = 0.5;

/// When a call has to end, in seconds since it began.
struct Deadline {
  explicit Deadline(const MeasurementBounds& bounds)
      : seconds(bounds.seconds), latest(seconds > 0 ? seconds + bounds.more_if_busy : 0) {}
  double seconds;  // on a quiet machine
  double latest;   // on a busy one
};

/// Each link alone, then each group of links at once. Leaves out what cannot end by the deadline
/// since `watch` began: by nominal speeds, then also by those that were measured.
void measure(std::vector<Traffic>& traffic, std::vector<LinkMeasurement>& links,
             const std::vector<std::vector<size_t>>& groups, const Deadline& deadline,
             const Stopwatch& watch) {
  const double each =
      std::min(kLongest, deadline.seconds / static_cast<double>(links.size() + groups.size() + 1));
  const auto fits = [&](const std::vector<const Traffic*>& run) {
    return !run.front()->movers.empty() && watch.seconds() + least_seconds(run) <= deadline.latest;
  };
  for (size_t i = 0; i < links.size(); ++i) {
    const std::vector<const Traffic*> one{&traffic[i]};
    links[i].too_slow = !fits(one);
    for (int run = 0; run < kRuns && fits(one); ++run) {  // the best: other programs run, too
      const double then = watch.seconds() + least_seconds(one);
      if (run > 0 && then > deadline.seconds / 2) break;  // a busy machine
      links[i].alone = std::max(links[i].alone, run_at_once(one, each / kRuns).front());
    }
    if (links[i].alone > 0) {
      traffic[i].passing = std::max(traffic[i].passing, traffic[i].piece_bytes / links[i].alone);
    }
  }
  for (const std::vector<size_t>& group : groups) {
    std::vector<size_t> measured;
    std::vector<const Traffic*> at_once;
    for (const size_t i : group) {
      if (links[i].alone <= 0) continue;
      measured.push_back(i);
      at_once.push_back(&traffic[i]);
    }
    if (measured.empty()) continue;
    if (!fits(at_once)) {
      for (const size_t i : measured) links[i].too_slow = true;
      continue;
    }
    const std::vector<double> rates = run_at_once(at_once, each);
    for (size_t i = 0; i < measured.size(); ++i) links[measured[i]].together = rates[i];
  }
}

// ---- devices

constexpr uint64_t kMostPiece = uint64_t{32} << 20;
constexpr double kPieceSeconds = 0.02;  // of a piece at the link's nominal speed

/// One direction of a device's link with its memory.
struct DeviceDirection {
  std::unique_ptr<Arena> here, there;
  std::unique_ptr<Stream> stream;
};

size_t piece_of(const MeasuredDevice& links, double nominal, uint64_t share, double seconds) {
  uint64_t bytes = std::min(kMostPiece, share);
  for (const MemorySpace& space : links.device->spaces()) {
    if (space.kind == SpaceKind::device) bytes = std::min(bytes, space.budget / 4);
  }
  if (nominal > 0) bytes = std::min(bytes, static_cast<uint64_t>(nominal * seconds));
  return static_cast<size_t>(std::max<uint64_t>(bytes, 64));
}

// ---- memory of the host

constexpr size_t kMostThreads = 16;         // of a node; fewer saturate its memory
constexpr size_t kSlice = size_t{4} << 20;  // of a copy, between looks at the clock
constexpr uint64_t kLeastBuffer = uint64_t{4} << 20;

void bind_thread(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(static_cast<size_t>(cpu), &set);
  sched_setaffinity(0, sizeof set, &set);  // a wish
}

struct Buffer {
  std::shared_ptr<Arena> arena;
  size_t size = 0;  // resident
};

/// Buffers of some bytes in all, made resident by a thread on each CPU: no more of them than the
/// seconds allow, and a slice of each at least.
std::vector<Buffer> buffers_on(const std::vector<int>& cpus, uint64_t bytes, double seconds) {
  std::vector<Buffer> buffers;
  for (const int cpu : cpus) {
    const auto size = static_cast<size_t>(bytes / cpus.size());
    Buffer buffer{std::make_shared<Arena>("measurement", size)};
    std::thread([&] {
      bind_thread(cpu);
      const Stopwatch watch;
      do {
        const size_t slice = std::min(size - buffer.size, kSlice);
        std::memset(buffer.arena->data() + buffer.size, 1, slice);
        buffer.size += slice;
      } while (buffer.size < size && watch.seconds() * static_cast<double>(cpus.size()) < seconds);
    }).join();
    buffers.push_back(std::move(buffer));
  }
  return buffers;
}

Traffic copies(const std::vector<int>& cpus, const std::vector<Buffer>& from,
               const std::vector<Buffer>& to) {
  Traffic traffic;
  traffic.piece_bytes = static_cast<double>(cpus.size() * kSlice);
  for (size_t i = 0; i < cpus.size(); ++i) {
    traffic.movers.push_back(
        [cpu = cpus[i], source = from[i % from.size()], target = to[i], at = size_t{0}]() mutable {
          bind_thread(cpu);
          const size_t size = std::min(source.size, target.size);
          const size_t bytes = std::min(size - at, kSlice);
          std::memcpy(target.arena->data() + at, source.arena->data() + at, bytes);
          at = (at + bytes) % size;  // through the whole buffer, which no cache holds
          return bytes;
        });
  }
  return traffic;
}

/// A memory of the host: its name as a place, and CPUs beside it.
struct HostMemory {
  std::string name;
  std::vector<int> cpus;
};

std::vector<HostMemory> memories_of(const Topology& topology) {
  std::vector<HostMemory> memories;
  if (topology.nodes.size() > 1) {
    for (const NumaNode& node : topology.nodes) {
      std::vector<int> cpus = topology.worker_cpus_of_node(node.number);
      if (!cpus.empty()) memories.push_back({"host:" + std::to_string(node.number), cpus});
    }
  } else {
    memories.push_back({"host", topology.worker_cpus()});
  }
  for (HostMemory& memory : memories) {
    memory.cpus.resize(std::min(memory.cpus.size(), kMostThreads));
  }
  return memories;
}

}  // namespace

std::vector<LinkMeasurement> measure_device_links(std::span<const MeasuredDevice> devices,
                                                  const MeasurementBounds& bounds) {
  const Stopwatch watch;
  std::vector<LinkMeasurement> links;
  if (devices.empty()) return links;
  std::vector<Traffic> traffic;
  std::vector<size_t> all;
  const auto directions = static_cast<double>(2 * devices.size());
  // Many links share the time, too: each moves two pieces in a run alone, and two beside the others.
  const double piece_seconds = std::min(kPieceSeconds, bounds.seconds / (16 * directions));
  for (const MeasuredDevice& of : devices) {
    for (const bool in : {true, false}) {
      const double nominal = in ? of.nominal_in : of.nominal_out;
      const std::string& name = of.device->name();
      all.push_back(links.size());
      links.push_back({in ? "host->" + name : name + "->host", nominal});
      if (watch.seconds() > kBufferShare * bounds.seconds) {
        traffic.emplace_back();
        continue;
      }
      // A buffer at each end of each direction.
      const size_t bytes =
          piece_of(of, nominal, bounds.bytes / (4 * devices.size()), piece_seconds);
      StreamOptions options;
      options.name = "measurement";
      options.use = in ? StreamUse::copy_in : StreamUse::copy_out;
      const auto d = std::make_shared<DeviceDirection>();
      d->here = of.device->reserve("measurement", SpaceKind::pinned, bytes);
      d->there = of.device->reserve("measurement", SpaceKind::device, bytes);
      d->stream = of.device->create_stream(options);
      if (of.device->host_reaches()) std::memset(d->there->data(), 1, bytes);
      std::memset(d->here->data(), 1, bytes);
      Device& device = *of.device;
      traffic.push_back({{[d, in, bytes, &device]() -> uint64_t {
                           std::byte* here = d->here->data();
                           std::byte* there = d->there->data();
                           device.copy(*d->stream, in ? there : here, in ? here : there, bytes);
                           d->stream->synchronize();
                           return bytes;
                         }},
                         static_cast<double>(bytes),
                         in ? of.latency_in : of.latency_out,
                         nominal > 0 ? static_cast<double>(bytes) / nominal : 0});
    }
  }
  measure(traffic, links, {all}, Deadline(bounds), watch);
  return links;
}

std::vector<LinkMeasurement> measure_memory(const Topology& topology,
                                            const MeasurementBounds& bounds) {
  const Stopwatch watch;
  const std::vector<HostMemory> memories = memories_of(topology);
  const uint64_t each = bounds.bytes / (2 * memories.size());  // sources and targets
  const double for_each = kBufferShare * bounds.seconds / static_cast<double>(2 * memories.size());
  std::vector<std::vector<Buffer>> from, to;
  for (HostMemory memory : memories) {
    const uint64_t most = std::max<uint64_t>(each / kLeastBuffer, 1);
    memory.cpus.resize(std::min<size_t>(memory.cpus.size(), most));
    from.push_back(buffers_on(memory.cpus, each, for_each));
    to.push_back(buffers_on(memory.cpus, each, for_each));
  }
  std::vector<Traffic> traffic;
  std::vector<LinkMeasurement> links;
  std::vector<std::vector<size_t>> groups(1);  // the first: every node within its own memory
  for (size_t a = 0; a < memories.size(); ++a) {
    for (size_t b = 0; b < memories.size(); ++b) {
      std::vector<int> cpus = memories[b].cpus;
      cpus.resize(to[b].size());
      traffic.push_back(copies(cpus, from[a], to[b]));
      const size_t index = links.size();
      links.push_back({memories[a].name + "->" + memories[b].name});
      if (a == b) {
        groups[0].push_back(index);
      } else if (a < b) {
        groups.push_back({index, b * memories.size() + a});  // with the way back
      }
    }
  }
  measure(traffic, links, groups, Deadline(bounds), watch);
  return links;
}

}  // namespace hearth
