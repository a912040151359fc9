#include "train/rank_orders.h"

#include <utility>

#include "setup/row_requests.h"
#include "train/own_state.h"
#include "train/unseen_updates.h"

namespace hearth {

void send_order(RankTeam& team, const Order& order) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&order);
  std::vector<Outgoing> out;
  for (int32_t rank = 1; rank < team.size(); ++rank) out.push_back({rank, {bytes, sizeof order}});
  team.comm().wait_for(team.comm().transfer(team.next(), std::move(out), {}));
}

static Order receive_order(RankTeam& team) {
  Order order;
  team.comm().wait_for(team.comm().transfer(
      team.next(), {}, {{0, {reinterpret_cast<std::byte*>(&order), sizeof order}}}));
  return order;
}

void join_records(RankTeam& team, GradientRecord& gradients) {
  const std::string own = gradients.to_json().as_string();
  std::vector<std::string> all(static_cast<size_t>(team.size()), own);
  std::vector<Bytes> from;
  for (std::string& of : all) from.push_back({reinterpret_cast<std::byte*>(of.data()), of.size()});
  team.comm().wait_for(team.comm().gather(
      team.next(), {reinterpret_cast<const std::byte*>(own.data()), own.size()}, from));
  for (const std::string& of : all) gradients.add(of);
}

uint64_t follow_orders(RankTeam& team, const PlacedModel& model, const TrainConfig& config,
                       const RowSet& rows) {
  Session session(model, &team);
  session.read_weights();
  StateRegistry registry;
  session.register_state(registry);
  OwnState state(team, registry, config.out, session.pool());
  const StepHooks hooks{{}, [&state](size_t views) { state.wait_until_safe(views); }};
  Sampler sampler(rows, sampler_options(config));
  GradientRecord gradients(model.table, model.opened->spec);
  UnseenUpdates unseen(gradients);
  while (true) {
    const Order order = receive_order(team);
    switch (order.kind) {
      case Order::Kind::load:
        state.load();
        session.shared()->spread();
        state.tell_digests();
        break;
      case Order::Kind::collect: session.shared()->collect(); break;
      case Order::Kind::digest: state.tell_digests(); break;
      case Order::Kind::save: state.begin_save(order.step); break;
      case Order::Kind::let_go: {
        const MeasuredMemory measured = session.measured_memory();
        uint64_t bytes = measured.schedules;
        for (const MeasuredArena& arena : measured.arenas) {
          if (model.opened->place(arena.place).host_reaches) bytes += arena.bytes;
        }
        return bytes;
      }
      case Order::Kind::step: {
        team.begin_step(order.step);
        sampler.seek({order.epoch, order.sequence});
        auto result =
            session.train_step(sampler.next_step(), {order.step, order.update, order.lr}, hooks);
        unseen.look(session.table());  // at those that were due
        if (!result->finite) break;
        unseen.add(session, std::move(result->expert_tokens));
        join_records(team, gradients);
        break;
      }
      case Order::Kind::drain:
        session.drain(hooks);
        unseen.look(session.table());
        join_records(team, gradients);
        break;
    }
  }
}

}  // namespace hearth
