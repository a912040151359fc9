#include "train/straggler_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/peer_error.h"

namespace hearth {

namespace {

constexpr int64_t kPieceSteps = 8;
constexpr double kPieceSeconds = 1.25;
constexpr size_t kPieces = 4;
constexpr double kSlow = 4.0 / 3, kKeepsUp = 1.15;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// The work of a rank over the median of the others.
double factor_of(const std::vector<double>& work, size_t rank) {
  std::vector<double> others = work;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(rank));
  const double usual = median(std::move(others));
  return usual > 0 ? work[rank] / usual : 0;
}

}  // namespace

std::string Straggler::text() const {
  return fmt::format("{} is slow: in the last {} steps it took {:.2f} times as long as the others",
                     named_rank(rank, host), steps, factor);
}

std::optional<Straggler> StragglerWatch::add(std::span<const RankStep> step) {
  if (step.size() < 2) return std::nullopt;
  open_.resize(step.size());
  double longest = 0;
  for (size_t rank = 0; rank < step.size(); ++rank) {
    open_[rank].push_back(std::max(0.0, step[rank].time_s - step[rank].wait_s));
    longest = std::max(longest, step[rank].time_s);
  }
  open_s_ += longest;
  if (std::ssize(open_[0]) < kPieceSteps || open_s_ < kPieceSeconds) return std::nullopt;
  return end_piece(step);
}

std::optional<Straggler> StragglerWatch::end_piece(std::span<const RankStep> step) {
  Piece& last = pieces_.emplace_back();
  last.steps = std::ssize(open_[0]);
  for (std::vector<double>& work : open_) last.work.push_back(median(std::move(work)));
  open_.clear();
  open_s_ = 0;
  if (pieces_.size() > kPieces) pieces_.pop_front();
  std::optional<Straggler> slowest;
  for (size_t rank = 0; rank < step.size(); ++rank) {
    const auto number = static_cast<int32_t>(rank);
    if (factor_of(pieces_.back().work, rank) < kKeepsUp) named_.erase(number);
    const bool slow = std::ranges::all_of(
        pieces_, [&](const Piece& piece) { return factor_of(piece.work, rank) >= kSlow; });
    if (!slow || pieces_.size() < kPieces || named_.contains(number)) continue;
    Straggler found{number, step[rank].host, 0, 0};
    std::vector<double> work(step.size());
    for (const Piece& piece : pieces_) {
      found.steps += piece.steps;
      for (size_t r = 0; r < work.size(); ++r) work[r] += piece.work[r];
    }
    found.factor = factor_of(work, rank);
    if (!slowest || found.factor > slowest->factor) slowest = std::move(found);
  }
  if (slowest) named_.insert(slowest->rank);
  return slowest;
}

}  // namespace hearth
