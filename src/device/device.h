// A device: memory spaces with byte budgets, ordered streams, events and asynchronous copies.
// Implementations: `host` (host_device.h), `virtual` (virtual_device.h) and `cuda` (cuda_device.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/arena.h"
#include "base/stream.h"
#include "device/link_rate.h"

namespace hearth {

enum class SpaceKind : uint8_t { host, pinned, device };

/// A memory that arenas are reserved in: host memory of a NUMA node, pinned host memory, or the
/// device's own.
struct MemorySpace {
  SpaceKind kind = SpaceKind::host;
  int node = 0;
  uint64_t budget = 0;  // bytes that may be reserved in all
};

/// What a stream is for. Ops run only on compute streams, which have priority, but for the sums of
/// several ranks' gradients. Copies in each direction have a stream of their own, so that they overlap;
/// so have, on the host, rows between ranks (`exchange`), and gradients and weights between them
/// (`collective`), which one worker sums. Decisions have one on the host (`control`): they take
/// microseconds, and must not wait behind its long tasks.
enum class StreamUse : uint8_t { compute, copy_in, copy_out, exchange, collective, control };

/// Resources of a stream: its workers (host and virtual only) and the scratch its ops may use.
struct StreamOptions {
  std::string name = "compute";
  int workers = 1;
  std::vector<int> cores;           // logical CPUs of the workers; empty = unbound
  size_t scratch_bytes = 0;         // shared by an op's tiles
  size_t worker_scratch_bytes = 0;  // for each worker
  StreamUse use = StreamUse::compute;
};

/// A point in a stream's order. Record it once, then reset it before the next use.
class Event {
 public:
  virtual ~Event() = default;
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  /// Makes the event ready for its next use. No thread may be waiting for it.
  virtual void reset() = 0;
  /// Blocks the calling thread until the event has been recorded and reached. Raises the
  /// error of the stream if the stream failed.
  virtual void synchronize() = 0;
  /// Whether the event has been recorded and reached. Does not block. Raises the error of the
  /// stream if the stream failed.
  virtual bool reached() = 0;
};

/// Thread-safe. Streams, events and arenas must not outlive their device. Every call may raise a
/// device error (exit 6). After the first error the device is unusable, and every later call raises
/// the same error; an earlier asynchronous operation may be its cause. Releasing memory never
/// raises.
class Device {
 public:
  virtual ~Device() = default;

  virtual const std::string& name() const = 0;
  /// Names what the device computes with: model, compute capability, driver. Two devices of one
  /// identity compute the same results. Empty on host and virtual devices.
  virtual const std::string& identity() const {
    static const std::string none;
    return none;
  }
  /// Whether work runs beside the host and is timed by the device's own clock (`seconds_between`).
  /// If not, an op has run when its call returns.
  virtual bool has_own_clock() const { return false; }
  virtual std::vector<MemorySpace> spaces() const = 0;
  /// Whether the host can access the space `device`. It can always access the other spaces.
  virtual bool host_reaches() const = 0;
  /// Bytes of its memory that nobody has taken, other programs included. nullopt: the device has no
  /// memory of its own, or shares it with nobody.
  virtual std::optional<uint64_t> free_bytes() { return std::nullopt; }
  /// Rates of the link to the host, if known without measuring.
  virtual std::optional<LinkRates> link_rates() const { return std::nullopt; }

  /// Reserves zeroed memory. Usage error, naming the arena, if it exceeds the budget of the space.
  /// On host and virtual devices `pinned` is ordinary memory.
  virtual std::unique_ptr<Arena> reserve(const std::string& arena, SpaceKind space,
                                         size_t bytes) = 0;
  /// Pins host memory of the caller until the result is released, so that copies of every device
  /// with this memory are asynchronous. A copy must not cross the border between two pinned ranges.
  /// Null if the system refuses to pin so many bytes. Thread-safe also for one device. Devices that
  /// copy from all host memory alike do nothing, and never refuse.
  virtual std::shared_ptr<void> pin(void* memory, size_t /*bytes*/) {
    return {memory, [](void*) {}};
  }
  virtual std::unique_ptr<Stream> create_stream(const StreamOptions& options) = 0;
  /// `timed`: the event can be passed to `seconds_between`. Timing has a small cost.
  virtual std::unique_ptr<Event> create_event(bool timed = false) = 0;

  /// Marks the event as reached once everything issued to the stream so far has finished.
  virtual void record(Event& event, Stream& stream) = 0;
  /// Later work of the stream starts after the event. Blocks the caller until the event is
  /// recorded. If this device and the event's device are asynchronous and of the same kind, it then
  /// returns, and the stream waits on the device. Otherwise it blocks until the event is reached.
  virtual void wait(Stream& stream, Event& event) = 0;
  /// Seconds from one event to the other, both timed; blocks until both have been reached.
  virtual double seconds_between(Event& begin, Event& end) = 0;
  /// Copies between any two spaces that this device reaches, in the stream's order. On cuda the
  /// copy is asynchronous, unless host memory is unpinned; then the driver decides. Copies are
  /// split into pieces, so that copies of other streams can run between them. Both ranges must stay
  /// valid until an event that was recorded after the copy is reached.
  virtual void copy(Stream& stream, void* target, const void* source, size_t bytes) = 0;
  /// Sets every byte of a range of memory of this device, in the stream's order.
  virtual void fill(Stream& stream, void* target, std::byte value, size_t bytes) = 0;
  /// Raises the device error if an operation has already failed.
  virtual void check() = 0;
  /// Fails an event and wakes its waiters with the error. Called when a stream's thread ends with
  /// an error.
  virtual void fail(Event& event, std::exception_ptr error) = 0;
};

}  // namespace hearth
