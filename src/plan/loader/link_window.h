// The pieces in flight, in both directions, and whether another may start.
#pragma once

#include <vector>

#include "plan/loader/loader_types.h"

namespace hearth {

/// How an item is cut: pieces of `piece_bytes`, then what is left.
inline int32_t count_pieces(size_t bytes, size_t piece_bytes) {
  return static_cast<int32_t>((bytes + piece_bytes - 1) / piece_bytes);
}

/// Bounds bytes and pieces in flight for each direction. Pieces may end in any order.
class LinkWindow {
 public:
  struct InFlight {
    ItemId item = -1;  // -1: a free ticket
    PieceKind kind = PieceKind::load;
    size_t bytes = 0;  // that cross the link
  };

  explicit LinkWindow(const LoaderSettings& settings);

  /// Whether a piece that moves `bytes` over the link may start.
  bool has_room(bool in, size_t bytes) const;
  /// Returns the ticket.
  int32_t start(const InFlight& piece);
  /// Frees the ticket. std::logic_error if no piece has it.
  InFlight finish(int32_t ticket);

  size_t bytes(bool in) const { return bytes_[in ? 1 : 0]; }
  int32_t pieces() const { return pieces_[0] + pieces_[1]; }

 private:
  size_t window_bytes_;
  int32_t window_pieces_;
  size_t bytes_[2] = {};
  int32_t pieces_[2] = {};
  std::vector<InFlight> by_ticket_;
  std::vector<int32_t> free_;
};

}  // namespace hearth
