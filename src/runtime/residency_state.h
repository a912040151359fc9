// The state of a residency, and how it drives the loader.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "device/host_event.h"
#include "plan/loader/loader.h"
#include "runtime/copy_lane.h"
#include "runtime/event_watch.h"
#include "runtime/residency.h"
#include "runtime/travelling_blocks.h"

namespace hearth {

/// One mutex guards the loader and all that belongs to it. Callers and the threads of the lanes tell
/// the loader what has happened, then carry out its commands.
class ResidencyState {
 public:
  ResidencyState(Device& device, const ParameterTable& table, const SlotPlan& plan,
                 const PinnedHomes& homes, LinkClock& clock);
  ~ResidencyState() {
    stop(std::make_exception_ptr(std::logic_error("residency: it is destroyed")));
  }

  void apply(const Wants& wants);
  Lease lease(std::span<const BlockId> blocks, bool with_gradient, bool is_expected);
  void wait(const Lease& lease, const LeasedBlock& block, Stream& stream);
  void release(const Lease& lease, Stream& stream);
  std::shared_ptr<Event> bring_home(BlockId begin, BlockId end);
  void begin_change(BlockId begin, BlockId end, HomeChange change);
  void changed(BlockId begin, BlockId end, HomeChange change);
  void take_stays(std::span<double> by_block);
  ShrinkReport shrink(std::span<const SlotClass> classes, std::string why);
  void stop(std::exception_ptr reason);

  /// An event of the loader: f(loader), then what it commands.
  template <class F>
  void tell_loader(const F& f) {
    const std::lock_guard lock(mutex_);
    raise();
    f(loader_);
    carry_out();
  }
  template <class F>
  auto look(const F& f) const {
    const std::lock_guard lock(mutex_);
    return f(*this);
  }

  const TravellingBlocks blocks;
  ResidencyCounts counts;
  bool keeps_trace = false;
  std::vector<LoadTime> trace;
  const Loader& loader() const { return loader_; }

 private:
  struct Use {
    enum class State : uint8_t { free, waiting, woken, released };
    State state = State::free;
    std::vector<Need> needs;
    std::vector<LeasedBlock> blocks;
    std::unique_ptr<Event> passed;  // what was issued before the release
    bool has_ended = false;         // on the device
  };
  struct SlotState {
    std::unique_ptr<Event> arrived;  // behind the last piece of its load
    uint64_t order = 0;              // of that piece among all
  };
  /// Of an item: its load or its way home, and what the copy was loaded from.
  struct Journey {
    double begin = 0;
    size_t bytes = 0;
    SlotId slot = -1;
    uint64_t home_version = 0;
    bool is_late = false;
    std::optional<double> here_since;  // of weights
    double here_s = 0;                 // until then
  };
  /// A call of bring_home that waits.
  struct Homecoming {
    HostEvent event;
    int32_t left = 0;
    std::vector<ItemId> items;
  };

  Use& use_at(int32_t use) { return uses_[static_cast<size_t>(use)]; }
  Journey& journey_of(ItemId item) { return journeys_[static_cast<size_t>(item)]; }
  std::byte* slot_of(ItemId item) const { return arena_->data() + loader_.arena_offset(item); }

  // residency_calls.cpp
  void raise() const {
    if (error_) std::rethrow_exception(error_);
  }
  void add_to(Use& use, BlockId block, bool with_gradient);
  void fill(LeasedBlock& block);
  void check_version(ItemId item);

  // residency_state.cpp
  void carry_out();
  void start(const Piece& piece);
  void passed(const CopyDone& done);
  void finish_journey(const CopyDone& done);
  void use_ended(int32_t use);
  bool end_if_here(int32_t use);
  void arrived_home(ItemId item);
  void fail(std::exception_ptr error);
  /// The items whose homes a change writes.
  template <class F>
  void for_items(BlockId begin, BlockId end, HomeChange change, const F& f) const {
    blocks.for_items(begin, end, change == HomeChange::updated, f);
  }

  Device& device_;
  LinkClock& clock_;

  std::mutex stopping_;  // of `stop`, which joins
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr error_;
  Loader loader_;
  std::unique_ptr<Arena> arena_;
  std::vector<Use> uses_;
  std::vector<int32_t> free_uses_;
  std::vector<int32_t> ending_;  // ended on the device, but a piece is not yet reported
  std::vector<SlotState> slots_;
  std::vector<Journey> journeys_;  // by item
  std::vector<std::shared_ptr<Homecoming>> homecomings_;
  std::optional<ShrinkReport> shrink_;  // the one under way
  bool is_shrunk_ = false;
  uint64_t pieces_ = 0;
  std::optional<CopyLane> in_, out_;
  std::optional<EventWatch> watch_;  // of devices whose work runs beside the host
};

}  // namespace hearth
