// What rank 0 tells the other ranks to do next, and what they do.
#pragma once

#include <cstdint>
#include <string>

#include "comm/rank_team.h"
#include "data/samples/sampler.h"
#include "setup/config.h"
#include "train/session.h"
#include "verdict/gradient_record.h"

namespace hearth {

/// All numbers, so that it is the same bytes everywhere.
struct Order {
  enum class Kind : int64_t {
    load,     // rank 0 loads a state; this rank gets what it owns, then weights from their owners
    step,     // train it
    drain,    // make the updates that are due
    collect,  // weights to rank 0
    digest,   // tell the digests of what this rank owns
    save,     // the state of `step`, beside what comes next
    let_go,   // return
  };
  Kind kind = Kind::step;
  int64_t step = 0, update = 0;
  double lr = 0;
  int64_t epoch = 0, sequence = 0;
};

/// Of rank 0, to all others.
void send_order(RankTeam& team, const Order& order);

/// After a step, or updates that were due: joins what the ranks saw of gradients. A tensor had a gradient
/// if its owner saw one. All ranks call it.
void join_records(RankTeam& team, GradientRecord& gradients);

/// Of the other ranks: does what rank 0 orders, until it lets this rank go. Saves go below config.out.
/// Returns the bytes that the rank took. Raises PeerError, and errors of its own.
uint64_t follow_orders(RankTeam& team, const PlacedModel& model, const TrainConfig& config,
                       const RowSet& rows);

}  // namespace hearth
