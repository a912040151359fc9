#include "train/rank_crew.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "base/error_format.h"
#include "base/planted.h"
#include "base/raised_error.h"
#include "base/stopwatch.h"
#include "comm/checking_world.h"
#include "comm/thread_world.h"
#include "train/launched_run.h"
#include "train/shared_disk.h"

namespace hearth {

namespace {

constexpr double kGrace = 5;  // seconds for a rank that fell silent to come to itself

[[noreturn]] void end_process(const Error& error) {
  std::fflush(stdout);
  std::fprintf(stderr, "hearth: %s\n", error.what());
  std::fflush(stderr);
  std::_Exit(static_cast<int>(error.code()));
}

/// Runs a rank, and ends the run of all ranks if it fails.
uint64_t run_rank(World& world, const PlannedRun& run) {
  try {
    RankTeam team(world);
    const PlacedModel& model = run.others[static_cast<size_t>(team.rank()) - 1];
    return follow_orders(team, model, run.config, run.data->rows.training());
  } catch (...) {
    as_error(std::current_exception(), [&](const Error& error) { world.fail(error); });
  }
  return 0;
}

}  // namespace

JsonObject read_fields(const RunIdentity& identity) {
  const Json all = to_json(identity);
  JsonObject fields;
  for (const char* name : {"model", "data", "adapter", "chat-template", "compute_dtype"}) {
    const Json* const field = all.find(name);
    fields.emplace_back(name, field == nullptr ? Json("none") : *field);
  }
  return fields;
}

RankCrew::RankCrew(const PlannedRun& run, RankTeam& launched, const RunIdentity& identity)
    : leader_(&launched) {
  tell_begin(launched, run);
  require_same_fields(launched, read_fields(identity));
  on_disk_ = ranks_on_disk(launched, run.config.out);
}

RankCrew::RankCrew(const PlannedRun& run) {
  ThreadWorldOptions options;
  options.ranks = run.model.plan.shards.ranks;
  options.links = run.config.rank_links;
  options.silence_s = 0;  // until a step has shown how long it takes
  std::vector<std::unique_ptr<World>> worlds = make_thread_worlds(options);
  for (auto& world : worlds) world = make_checking_world(std::move(world));
  for (size_t rank = 1; rank < worlds.size(); ++rank) {
    Follower& follower = followers_.emplace_back();
    follower.world = std::move(worlds[rank]);
    follower.thread = std::thread([this, &follower, &run] { follow(follower, run); });
  }
  world_ = std::move(worlds[0]);
  team_ = std::make_unique<RankTeam>(*world_);
  team_->watch_after_step(run.config.rank_limit);
  on_disk_.assign(worlds.size(), !planted("ranks-share-no-disk"));
  leader_ = team_.get();
}

void RankCrew::follow(Follower& follower, const PlannedRun& run) {
  follower.bytes = run_rank(*follower.world, run);
  follower.has_ended = true;
  try {
    follower.world->beat();
  } catch (const PeerError& end) {
    const bool leader_hangs = end.failure().fault == PeerFault::silent && end.failure().rank == 0;
    for (const Stopwatch watch; leader_hangs && !is_ending_;) {
      if (watch.seconds() > kGrace) end_process(end);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

bool RankCrew::end_within(double seconds) const {
  const auto has_ended = [](const Follower& follower) { return follower.has_ended.load(); };
  for (const Stopwatch watch; watch.seconds() < seconds;) {
    if (std::ranges::all_of(followers_, has_ended)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

RankCrew::~RankCrew() {
  if (running_ && team_) fail(Error(ExitCode::stopped, "the run is given up"));
}

void RankCrew::join_threads() {
  for (Follower& follower : followers_) follower.thread.join();
  running_ = false;
}

void RankCrew::register_state(Session& session, StateRegistry& registry) {
  state_ =
      std::make_unique<FarState>(*leader_, session.table(), session.shared()->owners(), on_disk_);
  session.register_state(registry, state_.get());
}

OtherReaders& RankCrew::begin_load() {
  send_order(*leader_, {.kind = Order::Kind::load});
  return *state_;
}

std::vector<int32_t> RankCrew::end_load(Session& session) {
  state_->end_load();
  session.shared()->spread();
  state_->take_digests(*leader_);
  state_->require_arrived();
  return state_->readers();
}

void RankCrew::begin_step(const StepNumbers& numbers, SamplerCursor cursor) {
  send_order(*leader_, {Order::Kind::step, numbers.step, numbers.update, numbers.lr, cursor.epoch,
                        cursor.sequence});
  leader_->begin_step(numbers.step);
}

void RankCrew::begin_drain() { send_order(*leader_, {.kind = Order::Kind::drain}); }

void RankCrew::join(GradientRecord& gradients) { join_records(*leader_, gradients); }

void RankCrew::collect(Session& session) {
  send_order(*leader_, {.kind = Order::Kind::collect});
  session.shared()->collect();
}

void RankCrew::take_digests() {
  send_order(*leader_, {.kind = Order::Kind::digest});
  state_->take_digests(*leader_);
}

OtherWriters& RankCrew::begin_save(int64_t step) {
  send_order(*leader_, {.kind = Order::Kind::save, .step = step});
  state_->begin_step(step);
  state_->take_digests(*leader_);
  return *state_;
}

std::vector<uint64_t> RankCrew::let_go() {
  if (!running_) return {};
  send_order(*leader_, {.kind = Order::Kind::let_go});
  join_threads();
  std::vector<uint64_t> bytes;
  for (const Follower& follower : followers_) bytes.push_back(follower.bytes);
  return bytes;
}

PeerError RankCrew::fail(const Error& error) {
  PeerError end = leader_->world().fail(error);
  is_ending_ = true;
  const bool hangs = team_ && end.failure().fault == PeerFault::silent;
  if (hangs && !end_within(kGrace)) end_process(end);
  if (running_) join_threads();
  return end;
}

}  // namespace hearth
