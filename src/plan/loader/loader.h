// The loader: which items come to the slots of a device, stay there and go home. A pure state
// machine: no threads, no clocks, no memory of items, no input or output. Events go in and commands
// come out. Equal events give equal commands, so whoever drives it, real links or model time, gets
// the same decisions.
//
//                 want, demand          claims a slot             last piece done
//        home ───────────────► queued ───────────────► coming ───────────────────► here
//         ▲ ◄───── remove ───────┘ ▲                      │ cancelled between pieces │
//         │                        └── still asked for ───┤                          │
//         └────── slot is free ◄───────────────────────── leaving ◄──────────────────┘
//                                                                evicted; if dirty: written back
//
// A driver reports events, and after each asks `next` until nothing is left to do. Drivers are
// runtime/residency.h, by the events of a device, plan/load_simulation.h, by model time, and tests.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "plan/loader/indexed_queues.h"
#include "plan/loader/link_window.h"
#include "plan/loader/loader_types.h"
#include "plan/loader/queue_turns.h"
#include "plan/loader/slot_ranking.h"
#include "plan/loader/use_table.h"

namespace hearth {

/// Promises:
///   - A use is woken only if all its items are in slots, with the version of their home or a newer
///     one, and these stay until the use ends. With Start::issued the last pieces may be in flight.
///   - In a queue, loads begin in the order of their keys. Of two queues that can load, the less
///     urgent one waits for at most `patience` pieces at a time; in every run of `patience` + 2
///     pieces each of the three queues that could load throughout has one.
///   - Every demand is woken in the end, if pieces end and the slots of each class are enough for
///     what uses hold and demand at one time (the plan sees to that), or if uses end without waiting
///     for others and no new ones come.
///   - A wanted item that is not removed comes, once a slot of its class is empty or holds nothing
///     that is held or asked for more urgently.
///   - What is newer in a slot than at home is written back before the slot is used again, unless a
///     shutdown discards it.
///
/// Not thread-safe. Copies are independent: a copy answers what would happen. Misuse by the caller
/// is a std::logic_error. After the first steps nothing is allocated.
class Loader {
 public:
  /// `uses`: how many uses there can be at one time.
  Loader(std::span<const LoadItem> items, std::span<const SlotClass> classes,
         const LoaderSettings& settings, int32_t uses);

  // Events: what is asked for.

  /// Loads ahead. Asked again, the more urgent want holds, also for a load that has begun. Holds
  /// until a use has the item. No effect in a shutdown.
  void want(const Want& want);
  /// Takes back a want, unless a use waits for the item. True: its load was queued. What comes, comes.
  bool remove(ItemId item);
  /// Takes back a want, cancels a load between pieces, and empties the slot once nobody holds the
  /// item. No effect while a use waits for it.
  void drop(ItemId item);
  /// When the item will be used next. Unknown (kNever) or past: it is evicted first.
  void expect(ItemId item, Position next_use);
  /// The position that the tasks have reached.
  void advance(Position now);

  // Events: uses.

  /// Wakes `use` when it has all its items. std::logic_error if it can never have them.
  void demand(UseId use, std::span<const Need> needs, Start start = Start::arrived);
  /// The use waits no longer.
  void withdraw(UseId use);
  /// The use has ended, on the device too. What it had for writing is newer than home.
  void end_use(UseId use);

  // Events: homes and links.

  /// Home is about to change. Its copy is no more, and nothing is loaded until `updated`. Pieces that
  /// are in flight still read home: the driver waits until `reads_home` is false. No use may hold the
  /// item, and no slot what is newer.
  void begin_update(ItemId item);
  /// Home has a new version, or zeros. No use may hold the item, and no slot what is newer.
  void updated(ItemId item, bool is_zero = false);
  /// Writes back what is newer than home, once nobody holds it; it stays in its slot. Says at_home,
  /// unless a shutdown discards what is newer.
  void bring_home(ItemId item);
  void finished(int32_t ticket);
  /// A smaller budget. Of each class so many slots stay open at most, and never fewer than its least:
  /// empties and closes the cheapest. Says `shrunk` once all are closed.
  void shrink(std::span<const int32_t> slots);
  /// Loads nothing more. Ends with CommandKind::ended after all uses have ended.
  void shut_down(Ending ending);

  /// What to do now; call until it returns nothing.
  std::optional<LoadCommand> next();

  // Questions.

  Where where(ItemId item) const;
  /// Whether pieces of a load are in flight.
  bool reads_home(ItemId item) const {
    const State state = entry(item).state;
    return entry(item).in_flight > 0 && (state == State::coming || state == State::cancelling);
  }
  bool is_held(ItemId item) const { return entry(item).pins > 0; }
  /// Of an item that is here: where its slot begins in the arena.
  size_t arena_offset(ItemId item) const;
  size_t arena_bytes() const { return arena_bytes_; }
  /// Of the slots that are open or still closing.
  size_t open_bytes() const { return open_bytes_; }
  /// The newest version, at home or in the slot. 0 at the start.
  uint64_t version(ItemId item) const { return entry(item).latest; }

 private:
  friend struct LoaderCheck;

  enum class State : uint8_t { home, queued, coming, cancelling, here, leaving };
  static constexpr int32_t kNone = -1;
  static constexpr int32_t kNoQueue = IndexedQueues<LoadKey>::kNone;

  struct Entry {
    size_t bytes = 0;
    int32_t slot_class = 0;
    State state = State::home;
    SlotId slot = kNone;      // that holds it
    SlotId promised = kNone;  // queued: the slot that it gets when it is empty
    LoadKey want;
    uint64_t latest = 0, at_home = 0, loaded = 0;  // versions: newest, of home, of the copy
    int32_t pieces = 0, issued = 0, done = 0, in_flight = 0;  // of the copy under way
    int32_t pins = 0;
    bool is_zero = false;      // home is
    bool is_dirty = false;     // the slot's content is newer than home, or is being changed
    bool is_updating = false;  // home is: nothing may read it
    bool go_home = false;      // bring_home waits
    bool leave = false;        // drop waits
    DropReason reason = DropReason::evicted;  // why it leaves
    Position next_use = kNever;
    uint64_t last_use = 0;
    uint64_t store_order = 0;  // of its write-back
    uint64_t counted = 0;      // by a demand
  };

  struct SlotEntry {
    size_t offset = 0;
    ItemId item = kNone;
    ItemId claimant = kNone;  // gets the slot when it is empty
    bool is_closing = false, is_closed = false;
  };

  struct ClassEntry {
    size_t bytes = 0;
    SlotId begin = 0, end = 0;
    int32_t open = 0, least = 0;
    int32_t needed = 0;  // by a demand
    std::vector<SlotId> empty;
    LoadKey refused;  // of a claim that failed: less urgent ones fail, too, until something changes
  };

  enum class Claim : uint8_t { taken, promised, refused };

  Entry& entry(ItemId item) { return entries_.at(static_cast<size_t>(item)); }
  const Entry& entry(ItemId item) const { return entries_.at(static_cast<size_t>(item)); }
  SlotEntry& slot_at(SlotId slot) { return slots_[static_cast<size_t>(slot)]; }
  const SlotEntry& slot_at(SlotId slot) const { return slots_[static_cast<size_t>(slot)]; }
  ClassEntry& class_of(const Entry& e) { return classes_[static_cast<size_t>(e.slot_class)]; }

  // loader.cpp
  LoadKey key_of(ItemId item) const;
  void key_changed(ItemId item);
  void tell(CommandKind kind, ItemId item, DropReason reason, size_t amount);
  void tell(CommandKind kind, UseId use);
  void refresh(ItemId item);
  void grant_complete();
  void rest(ItemId item);

  // loader_slots.cpp
  void touch(const Entry& e);
  void rank(SlotId slot);
  void unblock_all();
  double rebuild_seconds(size_t bytes, bool is_zero, bool is_dirty) const;
  std::optional<Victim> victim_in(SlotId slot, const LoadKey* claimed_by) const;
  bool is_sibling(const Victim& victim, ItemId item) const;
  Claim claim(ItemId item);
  void take_slot(ItemId item, SlotId slot);
  void promise(ItemId item, SlotId slot);
  void break_promise(ItemId item);
  void evict(ItemId item, DropReason reason);
  void vacate(ItemId item);
  void fill(SlotId slot);
  void close_cheapest(ClassEntry& of, SlotId slot);

  // loader_links.cpp
  size_t wait_queue(int priority, int32_t slot_class) const;
  size_t issue_queue(int priority) const { return static_cast<size_t>(priority); }
  size_t store_queue(bool is_urgent) const { return kPriorities + (is_urgent ? 0 : 1); }
  void enqueue_store(ItemId item);
  void start_leaving(ItemId item, DropReason reason);
  void arrived(ItemId item);
  void stored(ItemId item);
  ItemId candidate(int priority) const;
  bool can_load(int priority) const;
  bool issue_in();
  bool issue_out();
  void issue(ItemId item, PieceKind kind);
  size_t next_piece_bytes(const Entry& e) const;

  LoaderSettings settings_;
  std::vector<Entry> entries_;
  std::vector<SlotEntry> slots_;
  std::vector<ClassEntry> classes_;
  IndexedQueues<LoadKey> queues_;
  UseTable uses_;
  SlotRanking ranking_;
  LinkWindow window_;
  QueueTurns<kPriorities> in_turns_;
  QueueTurns<2> out_turns_;
  std::vector<LoadCommand> told_;  // from told_begin_ on
  size_t told_begin_ = 0;
  std::vector<UseId> complete_;
  std::vector<SlotId> best_;
  size_t arena_bytes_ = 0, open_bytes_ = 0, promised_bytes_ = 0;
  int32_t occupied_ = 0, closing_ = 0;
  uint64_t order_ = 0, ticks_ = 0;
  Position now_ = 0;
  bool is_shutting_ = false, discards_ = false, has_ended_ = false;
};

}  // namespace hearth
