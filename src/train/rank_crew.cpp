#include "train/rank_crew.h"

#include <exception>
#include <new>
#include <string>

#include "base/error_format.h"
#include "comm/checking_world.h"
#include "comm/thread_world.h"
#include "setup/row_requests.h"

namespace hearth {

namespace {

/// What rank 0 tells the others. All numbers, so that it is the same bytes everywhere.
struct Order {
  enum class Kind : int64_t { spread, step, collect, let_go };
  Kind kind = Kind::step;
  int64_t step = 0, update = 0;
  double lr = 0;
  int64_t epoch = 0, sequence = 0;
};

void send_order(RankTeam& team, const Order& order) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&order);
  std::vector<Outgoing> out;
  for (int32_t rank = 1; rank < team.size(); ++rank) out.push_back({rank, {bytes, sizeof order}});
  team.comm().wait_for(team.comm().transfer(team.next(), std::move(out), {}));
}

Order receive_order(RankTeam& team) {
  Order order;
  team.comm().wait_for(team.comm().transfer(
      team.next(), {}, {{0, {reinterpret_cast<std::byte*>(&order), sizeof order}}}));
  return order;
}

/// Joins the records of all ranks: a tensor had a gradient if its owner saw one.
void join_records(RankTeam& team, GradientRecord& gradients) {
  const std::string own = gradients.to_json().as_string();
  std::vector<std::string> all(static_cast<size_t>(team.size()), own);
  std::vector<Bytes> from;
  for (std::string& of : all) from.push_back({reinterpret_cast<std::byte*>(of.data()), of.size()});
  team.comm().wait_for(team.comm().gather(
      team.next(), {reinterpret_cast<const std::byte*>(own.data()), own.size()}, from));
  for (const std::string& of : all) gradients.add(of);
}

/// The plan of another rank of the same run. It has no evaluation and writes no samples.
PlacedModel placed_for(const PlannedRun& run, int32_t rank) {
  PlanRequest request = run.request;
  request.shards.rank = rank;
  request.group = run.model.plan.train->group;
  request.recompute = run.model.plan.train->recompute;
  request.eval_tokens = request.decode_tokens = request.cache_rows = 0;
  return place_model(run.experts ? trained_model(run.opened, run.config, run.experts->experts)
                                 : trained_model(run.opened, run.config),
                     request);
}

/// Does what rank 0 orders. Returns the bytes that the rank took.
uint64_t follow(RankTeam& team, const PlannedRun& run) {
  const PlacedModel model = placed_for(run, team.rank());
  Session session(model, &team);
  session.read_weights();
  Sampler sampler(run.data->rows.training(), sampler_options(run.config));
  GradientRecord gradients(model.table, model.opened->spec);
  while (true) {
    const Order order = receive_order(team);
    switch (order.kind) {
      case Order::Kind::spread: session.shared()->spread(); break;
      case Order::Kind::collect: session.shared()->collect(); break;
      case Order::Kind::let_go: {
        const MeasuredMemory measured = session.measured_memory();
        uint64_t bytes = measured.schedules;
        for (const MeasuredArena& arena : measured.arenas) bytes += arena.bytes;
        return bytes;
      }
      case Order::Kind::step: {
        team.begin_step(order.step);
        sampler.seek({order.epoch, order.sequence});
        const auto result =
            session.train_step(sampler.next_step(), {order.step, order.update, order.lr});
        if (!result->finite) break;
        gradients.look(session.table(), result->expert_tokens);
        join_records(team, gradients);
        break;
      }
    }
  }
}

/// Runs a rank, and ends the run of all ranks if it fails.
uint64_t run_rank(World& world, const PlannedRun& run) {
  try {
    RankTeam team(world);
    return follow(team, run);
  } catch (const Error& error) {
    world.fail(error);
  } catch (const std::bad_alloc&) {
    world.fail(storage_error("out of memory"));
  } catch (const std::exception& error) {
    world.fail(Error(ExitCode::internal, error.what()));
  }
  return 0;
}

}  // namespace

RankCrew::RankCrew(const PlannedRun& run) {
  ThreadWorldOptions options;
  options.ranks = run.model.plan.shards.ranks;
  options.silence_s = 0;  // rank 0 may evaluate or save for long
  std::vector<std::unique_ptr<World>> worlds = make_thread_worlds(options);
  for (auto& world : worlds) world = make_checking_world(std::move(world));
  followers_.resize(worlds.size() - 1);
  for (size_t i = 0; i < followers_.size(); ++i) {
    Follower& follower = followers_[i];
    follower.world = std::move(worlds[i + 1]);
    follower.thread =
        std::thread([&follower, &run] { follower.bytes = run_rank(*follower.world, run); });
  }
  world_ = std::move(worlds[0]);
  team_ = std::make_unique<RankTeam>(*world_);
}

RankCrew::~RankCrew() {
  if (running_) fail(Error(ExitCode::stopped, "the run is given up"));
}

void RankCrew::join_threads() {
  for (Follower& follower : followers_) follower.thread.join();
  running_ = false;
}

void RankCrew::spread(Session& session) {
  send_order(*team_, {.kind = Order::Kind::spread});
  session.shared()->spread();
}

void RankCrew::begin_step(const StepNumbers& numbers, SamplerCursor cursor) {
  send_order(*team_, {Order::Kind::step, numbers.step, numbers.update, numbers.lr, cursor.epoch,
                      cursor.sequence});
  team_->begin_step(numbers.step);
}

void RankCrew::join(GradientRecord& gradients) { join_records(*team_, gradients); }

void RankCrew::collect(Session& session) {
  send_order(*team_, {.kind = Order::Kind::collect});
  session.shared()->collect();
}

uint64_t RankCrew::let_go() {
  if (!running_) return 0;
  send_order(*team_, {.kind = Order::Kind::let_go});
  join_threads();
  uint64_t bytes = 0;
  for (const Follower& follower : followers_) bytes += follower.bytes;
  return bytes;
}

PeerError RankCrew::fail(const Error& error) {
  PeerError end = world_->fail(error);
  if (running_) join_threads();
  return end;
}

}  // namespace hearth
