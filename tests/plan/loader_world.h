// A world for a loader: homes, an arena, two links and uses, in bytes that know which version of
// which item they are. Carries out the loader's commands and checks each against the world alone.
#pragma once

#include <optional>
#include <stdexcept>
#include <vector>

#include "plan/loader/loader.h"

namespace hearth::test {

inline Need reads(ItemId item) { return {item, UseAccess::read}; }
inline Need writes(ItemId item) { return {item, UseAccess::write}; }

/// std::runtime_error if something does not hold.
inline void must(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

struct LoaderCase {
  std::vector<LoadItem> items;
  std::vector<SlotClass> classes;
  LoaderSettings settings = {.piece_bytes = 1, .window_bytes = 2, .window_pieces = 3};
  int32_t uses = 4;
};

/// Every fault is a std::runtime_error. Copies are independent.
class LoaderWorld {
 public:
  enum class UseState : uint8_t { free, waiting, woken, refused };

  /// `reads_late`: links read the source when a piece ends, not when it begins.
  explicit LoaderWorld(const LoaderCase& c, bool reads_late = false);

  // Events, as the loader has them. Afterwards all commands have been taken.
  void want(const Want& want);
  bool remove(ItemId item);
  void drop(ItemId item);
  void expect(ItemId item, Position next_use);
  void advance(Position now);
  void demand(UseId use, const std::vector<Need>& needs, Start start = Start::arrived);
  void withdraw(UseId use);
  void end_use(UseId use);
  void begin_update(ItemId item);
  void updated(ItemId item, bool is_zero);
  void bring_home(ItemId item);
  void shrink(const std::vector<int32_t>& slots);
  void shut_down(Ending ending);
  /// The n-th oldest piece in flight of a direction ends.
  void finish_piece(bool in, size_t n = 0);

  size_t in_flight(bool in) const;
  UseState state(UseId use) const { return uses_[static_cast<size_t>(use)].state; }
  /// A woken use whose pieces have all arrived: what a stream that waits for them sees.
  bool can_end(UseId use) const;
  bool is_held(ItemId item) const;
  /// Home may be updated: nobody holds the item, and nothing is newer.
  bool can_update(ItemId item) const;
  bool is_updating(ItemId item) const { return at(item).is_updating; }
  bool is_at_home(ItemId item) const { return !at(item).is_newer; }
  bool asked_home(ItemId item) const { return at(item).asked_home; }
  bool has_ended() const { return has_ended_; }
  bool is_shutting() const { return is_shutting_; }
  bool is_here(ItemId item) const { return loader_.where(item) == Where::here; }

  /// Nothing is left to do: every use was woken and ended, every want that could come has come, and
  /// after a shutdown all is at home.
  void check_at_rest() const;
  /// Ends pieces and woken uses until nothing is left to do.
  void come_to_rest();

  const Loader& loader() const { return loader_; }
  /// The kinds and items of all commands so far, in order: equal if the commands were.
  uint64_t digest() const { return digest_; }
  uint64_t events() const { return events_; }
  /// Items by the beginnings of their loads.
  const std::vector<ItemId>& loads() const { return loads_; }
  /// Items by the beginnings of their pieces, of a direction.
  const std::vector<ItemId>& pieces(bool in) const { return pieces_[in ? 1 : 0]; }
  const std::vector<LoadCommand>& told() const { return told_; }  // all but pieces and wakes
  /// No piece goes before a more urgent one. Only where no load has to wait for its slot.
  void check_order(bool is_strict) { is_strict_ = is_strict; }
  void check_books(bool checks) { checks_books_ = checks; }

 private:
  static constexpr uint64_t kBeingWritten = ~uint64_t{0};

  struct Cell {
    ItemId item = -1;
    uint64_t version = 0;
  };
  struct Item {
    std::vector<uint64_t> home;  // versions, by byte
    size_t slot_bytes = 0;
    uint64_t newest = 0;
    bool is_zero = false;
    bool is_newer = false;  // the slot is newer than home, or is being written
    bool is_owner = false;  // of a slot
    bool asked_home = false;
    bool is_updating = false;  // home is: nothing may read it once what was in flight has ended
    size_t offset = 0;
    size_t asked = 0, arrived = 0, stored = 0;  // bytes since it got the slot, or leaves it
    std::optional<LoadKey> want, demand;        // as the test counts them
  };
  struct Use {
    UseState state = UseState::free;
    Start start = Start::arrived;
    std::vector<Need> needs;
  };
  struct Flying {
    Piece piece;
    std::vector<uint64_t> content;
  };

  Item& at(ItemId item) { return items_[static_cast<size_t>(item)]; }
  const Item& at(ItemId item) const { return items_[static_cast<size_t>(item)]; }
  void take_commands();
  void start(const Piece& piece);
  void start_load(const Piece& piece);
  void start_store(const Piece& piece);
  void check_priority(ItemId loaded) const;
  void wake(UseId use);
  void dropped(const LoadCommand& command);
  void read_source(Flying& flying) const;
  void check_content(ItemId item) const;
  std::optional<LoadKey> key(ItemId item) const;
  void renew_demands();

  LoaderCase case_;
  Loader loader_;
  std::vector<Item> items_;
  std::vector<Use> uses_;
  std::vector<Cell> arena_;
  std::vector<Flying> flying_[2];
  std::vector<ItemId> loads_;
  std::vector<ItemId> pieces_[2];
  std::vector<LoadCommand> told_;
  std::vector<uint64_t> use_orders_;
  size_t bytes_in_flight_[2] = {};
  size_t budget_ = 0;          // of the slots that are to stay open
  std::vector<int32_t> open_;  // by class
  uint64_t digest_ = 1, events_ = 0, order_ = 0;
  bool reads_late_, is_shutting_ = false, discards_ = false, has_ended_ = false;
  bool is_strict_ = false, checks_books_ = true;
};

}  // namespace hearth::test
