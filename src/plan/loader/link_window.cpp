#include "plan/loader/link_window.h"

#include <stdexcept>

namespace hearth {
namespace {

size_t direction(PieceKind kind) { return kind == PieceKind::store ? 0 : 1; }

}  // namespace

LinkWindow::LinkWindow(const LoaderSettings& settings)
    : window_bytes_(settings.window_bytes), window_pieces_(settings.window_pieces) {
  if (settings.piece_bytes == 0 || settings.piece_bytes > settings.window_bytes ||
      settings.window_pieces < 1) {
    throw std::logic_error("loader: no piece fits the window");
  }
  const int32_t most = 2 * window_pieces_;
  by_ticket_.resize(static_cast<size_t>(most));
  for (int32_t ticket = most; ticket-- > 0;) free_.push_back(ticket);
}

bool LinkWindow::has_room(bool in, size_t bytes) const {
  const size_t d = in ? 1 : 0;
  return pieces_[d] < window_pieces_ && bytes <= window_bytes_ - bytes_[d];
}

int32_t LinkWindow::start(const InFlight& piece) {
  const size_t d = direction(piece.kind);
  bytes_[d] += piece.bytes;
  ++pieces_[d];
  const int32_t ticket = free_.back();
  free_.pop_back();
  by_ticket_[static_cast<size_t>(ticket)] = piece;
  return ticket;
}

LinkWindow::InFlight LinkWindow::finish(int32_t ticket) {
  const auto at = static_cast<size_t>(ticket);
  if (ticket < 0 || at >= by_ticket_.size() || by_ticket_[at].item < 0) {
    throw std::logic_error("loader: a piece that is not in flight has ended");
  }
  const InFlight piece = by_ticket_[at];
  by_ticket_[at] = {};
  free_.push_back(ticket);
  const size_t d = direction(piece.kind);
  bytes_[d] -= piece.bytes;
  --pieces_[d];
  return piece;
}

}  // namespace hearth
