// What the loader (plan/loader/loader.h) is told and what it says: items, slots, wants, needs,
// pieces and commands.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace hearth {

using ItemId = int32_t;  // position in the list of items
using SlotId = int32_t;  // position among the slots, class after class
using UseId = int32_t;   // 0 to the loader's `uses` - 1, chosen by the caller

/// A moment in the order of tasks. It rises from step to step. It is no time.
using Position = int64_t;
inline constexpr Position kNever = std::numeric_limits<Position>::max();

/// What moves as a whole between its home and a slot: the weights of a block, or the accumulator of
/// its gradient. The two are two items, since they move at different times.
struct LoadItem {
  size_t bytes = 0;  // at least 1
  /// Home is zero, as accumulators are after an update. Then a copy is cleared, not loaded.
  bool zero_at_home = false;
};

/// Slots of one size. The slots of all classes lie in one arena, class after class. An item belongs
/// to the smallest class that it fits, the first of equals.
struct SlotClass {
  size_t bytes = 0;
  int32_t slots = 0;
  int32_t least = 1;  // a shrinking budget leaves so many: what uses hold and demand at one time
};

/// Queues of loads, the most urgent first. Demanded items stand at the front of `expert`.
enum class Priority : uint8_t { expert, layer, stage };
inline constexpr int kPriorities = 3;

/// A load ahead of its use.
struct Want {
  ItemId item = 0;
  Priority priority = Priority::layer;
  int32_t rank = 0;  // within the priority; the lowest first, equals in the order of wants
};

enum class UseAccess : uint8_t { read, write };

/// An item that a use reads or changes.
struct Need {
  ItemId item = 0;
  UseAccess access = UseAccess::read;
};

/// When a use begins: when all of its items are here; or when all of their pieces are issued, if
/// what the use issues to a device waits for the last of them (a stream that waits for an event).
enum class Start : uint8_t { arrived, issued };

/// What happens to copies that are newer than home when the loader shuts down.
enum class Ending : uint8_t { write_back, discard };

struct LoaderSettings {
  size_t piece_bytes = size_t{16} << 20;   // most of a piece; at most the window
  size_t window_bytes = size_t{48} << 20;  // in flight, for each direction
  int32_t window_pieces = 16;              // in flight, for each direction
  /// A queue that can load gives way to at most so many pieces of more urgent queues.
  int32_t patience = 16;
  double in_bytes_per_s = 1;  // of the link; what a lost copy costs
  double out_bytes_per_s = 1;
};

enum class PieceKind : uint8_t {
  load,   // home to slot
  clear,  // zeros to the slot; crosses no link
  store   // slot to home
};

/// A piece of a copy, for the driver to carry out. It reports `ticket` when the piece is done.
struct Piece {
  int32_t ticket = -1;
  PieceKind kind = PieceKind::load;
  ItemId item = 0;
  SlotId slot = 0;
  size_t home_offset = 0;   // in the item
  size_t arena_offset = 0;  // in the arena of slots
  size_t bytes = 0;
  uint64_t version = 0;  // of the content
};

enum class DropReason : uint8_t {
  evicted,    // another item takes the slot
  stale,      // home has a newer version
  unwanted,   // drop()
  shrunk,     // the budget
  shut_down,  // the end
};

enum class CommandKind : uint8_t {
  piece,    // start `piece`
  wake,     // `use` has its items: it holds them until end_use
  refused,  // `use` was demanded, but the loader shuts down: it is free again
  dropped,  // `item` has left its slot, for `reason`; `amount`: bytes of the item
  at_home,  // `item` is at home, as bring_home asked
  shrunk,   // the slots that a smaller budget takes are closed; `amount`: bytes of those left
  ended     // shut down: nothing is in flight, every slot is empty
};

struct LoadCommand {
  CommandKind kind = CommandKind::ended;
  Piece piece;
  UseId use = -1;
  ItemId item = -1;
  DropReason reason = DropReason::evicted;
  size_t amount = 0;
};

/// Where an item is, as decisions see it.
enum class Where : uint8_t {
  home,    // there alone, and nobody asked for it
  queued,  // at home, to be loaded
  coming,  // it has a slot; its pieces are issued one by one
  here,    // in a slot
  leaving  // on its way home, or its load is being cancelled
};

/// The order of loads: smaller is more urgent.
struct LoadKey {
  static constexpr uint8_t kNoQueue = kPriorities;

  uint8_t queue = kNoQueue;
  int32_t rank = 0;
  uint64_t order = 0;

  bool any() const { return queue != kNoQueue; }
  friend auto operator<=>(const LoadKey&, const LoadKey&) = default;
};

}  // namespace hearth
