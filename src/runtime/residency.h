// The copies of blocks in the memory of one device: which are there, which come, and who reads them.
// The loader (plan/loader/loader.h) decides, this class carries out: it drives the loader by the
// events of the device. Nobody else copies weights between a home and a device.
//
//   decide task ── apply(wants) ──► queues of the loader ──► copy lane in ──► slots of the device
//   E's body ───── lease ─────────► use: all its blocks issued │                │   ▲
//                  wait ──────────► the stream waits for events ◄───────────────┘   │
//                  release ───────► behind what was issued: the slots may be reused │
//   before norm ── bring_home ────► copy lane out: accumulators go home ◄───────────┘
//   update task ── begin_change, changed ──► copies are no more, a later load reads the new home
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/link.h"
#include "plan/loader/travel_items.h"
#include "plan/loader/wants.h"
#include "runtime/pinned_homes.h"

namespace hearth {

/// The slots of a device, and what travels to them.
struct SlotPlan {
  /// Blocks with a home on the host. Their adapters travel with them and are not listed.
  std::vector<BlockId> blocks;
  CopyPolicy policy;
  /// Sizes are multiples of kSlotAlignment. Weights and accumulators are cargoes of their own: each
  /// needs a slot of its size (slot_layout.h). `least` is what leases hold at one time.
  std::vector<SlotClass> classes;
  LoaderSettings settings;
  int32_t leases = 64;  // most at one time, with those whose work the device has not finished
};

/// A block in slots, while it is leased.
struct LeasedBlock {
  BlockId block = -1;
  const std::byte* weights = nullptr;  // a slot; Residency::weights has the layout. Null: none
  std::byte* gradient = nullptr;       // a slot, to add to; null: not asked for, or none is trained
  Event* ready = nullptr;              // reached when all of it is there; null: it is there
};

/// The right to use blocks in slots, from `lease` to `release`.
struct Lease {
  int32_t number = -1;
  /// The blocks asked for, in that order, then the adapters of those that have one.
  std::span<const LeasedBlock> blocks;
  bool is_expected = false;

  /// A bug if the lease does not have the block.
  const LeasedBlock& of(BlockId block) const;
};

/// What happens to a home: the optimizer writes weights and clears the gradient, or tasks of the host
/// add to the gradient alone.
enum class HomeChange : uint8_t { updated, accumulated };

/// Counted since the start, by pieces that have been reported; differences of two readings are a
/// step's. Where streams wait beside the host, on a device with its own clock, their waits for loads
/// are in the trace, not in `stall_s`.
struct ResidencyCounts {
  uint64_t bytes_in = 0, bytes_out = 0;  // that crossed the link, by what the copies carried
  uint64_t bytes_cleared = 0;            // of accumulators that began at zero; crossed no link
  int64_t loads = 0, stores = 0;         // cargoes that came, and that went home
  int64_t evictions = 0;                 // cargoes that gave their slot to others
  int64_t stale = 0;                     // copies dropped because home changed
  int64_t taken_back = 0;                // loads that were asked for ahead, dropped while queued
  int64_t expert_leases = 0, expert_hits = 0;  // experts leased; of these, weights were there
  double stall_s = 0;                          // that callers of `lease` and `wait` were blocked
  double late_load_s = 0;                      // of this, for leases of what decisions called here
};

/// A load, or the way home of an accumulator, as the trace has it.
struct LoadTime {
  BlockId block = 0;
  Cargo cargo = Cargo::weights;
  bool in = true;
  bool is_late = false;       // a lease was given before it had arrived
  double begin = 0, end = 0;  // seconds of the clock
  size_t bytes = 0;           // that crossed the link
};

/// What a shrinking budget has dropped.
struct ShrinkReport {
  int32_t blocks = 0;     // cargoes dropped from slots
  size_t bytes = 0;       // of these
  size_t slot_bytes = 0;  // of the slots that were closed, empty ones too
  size_t open_bytes = 0;  // of the slots that are left
  std::string why;        // as given
};

/// Of one device. Slots lie in an arena of its own ("slots"), in the space `device`. Two threads and
/// two streams copy, one for each direction, in pieces; on a device with its own clock, a third
/// thread waits for the ends of leases. No call allocates what is larger than a list of blocks.
///
/// Thread-safe. An error of a copy or of the device reaches every caller that waits, every stream
/// that waits for an event of a lease, and every later call. What is leased by several callers at one
/// time must fit the slots: the plan checks that, and a lease that can never be given is a bug
/// (std::logic_error). A stale copy is never read: each lease compares the versions of the table with
/// those that the copy was loaded with.
class Residency {
 public:
  /// The table must be bound, with the homes on the host and the masters' accumulators at zero.
  /// `homes` pins the memory that travels, for all residencies of a run (home_memory has it). All
  /// arguments but the plan must outlive this object.
  Residency(Device& device, const ParameterTable& table, const SlotPlan& plan,
            const PinnedHomes& homes, LinkClock& clock = steady_link_clock());
  /// Joins its threads after the pieces in flight; what is newer in slots than at home is lost. No
  /// caller may be in a call (`stop` wakes them), and no stream may still use a slot.
  ~Residency();
  Residency(const Residency&) = delete;
  Residency& operator=(const Residency&) = delete;

  /// The home memory of what travels, for PinnedHomes.
  static std::vector<HostRange> home_memory(const ParameterTable& table, const SlotPlan& plan);

  // Decisions.

  /// Blocks that do not travel are left out.
  void apply(const Wants& wants);
  /// When a block and its adapter will be used next, in positions of the tasks; they are evicted by
  /// that.
  void expect(BlockId block, Position next_use);
  void advance(Position now);

  // Bodies.

  /// Makes the blocks demands. Waits until their copies are issued, not until they are there; all of
  /// a lease are held at once. `with_gradient`: with the accumulators of what is trained, to add to;
  /// one leaseholder at a time may add. `is_expected`: decisions called the blocks here.
  Lease lease(std::span<const BlockId> blocks, bool with_gradient, bool is_expected = false);
  /// The stream's later work sees the block. On devices without a clock of their own the caller
  /// waits.
  void wait(const Lease& lease, const LeasedBlock& block, Stream& stream);
  /// The same for all blocks of the lease.
  void wait(const Lease& lease, Stream& stream);
  /// The lease ends behind what was issued to the stream so far. After an error it does nothing.
  void release(const Lease& lease, Stream& stream);

  // Homes.

  /// Accumulators of the blocks (and of their adapters, if these are in the range) go home once their
  /// leases have ended. The event is reached when all are there; it is the host's, for any stream.
  std::shared_ptr<Event> bring_home(BlockId begin, BlockId end);
  /// Before homes change. Copies become stale. Returns when nothing reads these homes and leases have
  /// ended on the device; until `changed` nothing is loaded from them. Leases must be released, and
  /// accumulators at home.
  void begin_change(BlockId begin, BlockId end, HomeChange change);
  /// After `begin_change` with the same arguments: the homes have their new content.
  void changed(BlockId begin, BlockId end, HomeChange change);

  /// Between steps: of each class of the plan so many slots stay at most, from now on, and never
  /// fewer than its `least`. Drops the cheapest cached blocks; what is newer goes home. Returns when
  /// that is done.
  ShrinkReport shrink(std::span<const SlotClass> classes, std::string why);
  /// Ends all waiting and later calls with this error: a part of the run elsewhere has failed. The
  /// first error holds.
  void stop(std::exception_ptr reason);

  // What bodies and reports see.

  /// Layouts of the block's slots; a bug if the block does not travel.
  const SlotLayout& weights(BlockId block) const;
  const SlotLayout& gradient(BlockId block) const;
  bool travels(BlockId block) const;
  const TravelItems& items() const;
  ResidencyCounts counts() const;
  size_t arena_bytes() const;
  size_t open_bytes() const;
  /// Where a cargo of a block is, as far as pieces have been reported.
  Where where(BlockId block, Cargo cargo = Cargo::weights) const;
  /// Adds, for each block of the table, the seconds since the last call that its weights were in a slot,
  /// whole.
  void take_stays(std::span<double> by_block);
  /// Keeps the loads for `take_trace` from now on.
  void keep_trace();
  /// The loads that ended since the last call, by their ends.
  std::vector<LoadTime> take_trace();

 private:
  std::unique_ptr<class ResidencyState> state_;
};

}  // namespace hearth
