#include "plan/load_simulation.h"

#include <algorithm>

#include "base/error.h"
#include "plan/loader/slot_plan.h"

namespace hearth {

namespace {

enum : size_t { kIn, kOut };

}  // namespace

/// A device's loader, and what it has in hand.
struct LoadSimulation::OfDevice {
  Place place;
  int32_t number;
  TravelItems items;
  TravelTurns turns;
  Loader loader;
  std::array<std::deque<Piece>, 2> lanes;  // the first of each is on the link
  std::vector<Need> needs;                 // of the turn that waits or runs
  bool is_woken = false, has_asked = false;
  std::vector<uint8_t> goes_home;  // by item: norm waits for it
  int32_t going_home = 0;
  std::vector<double> begun;  // by item: its copy

  OfDevice(const ParameterTable& table, const CopyPolicy& policy, const Schedule& schedule,
           const DeviceLoads& loads, int32_t at)
      : place(loads.place),
        number(at),
        items(table, loads.blocks, policy),
        turns(items, table, schedule, place, loads.rule),
        loader(items.load_items(), loads.classes, loads.settings, 1),
        goes_home(items.items().size()),
        begun(items.items().size()) {}

  void bring_home(BlockId block) {
    const auto bring = [&](ItemId item) { loader.bring_home(item); };
    items.for_items(block, block + 1, false, bring);
    if (const auto adapter = items.adapter_of(block)) {
      items.for_items(*adapter, *adapter + 1, false, bring);
    }
  }
  /// Of the blocks of an update.
  template <class F>
  void for_updated(const Task& update, const F& f) const {
    for (const BlockUse& use : update.blocks) items.for_items(use.begin, use.end, true, f);
  }
};

LoadSimulation::LoadSimulation(const ParameterTable& table, const CopyPolicy& policy,
                               const Schedule& schedule, std::span<const DeviceLoads> devices)
    : schedule_(schedule) {
  for (const DeviceLoads& loads : devices) {
    asks_for_splits_ = loads.rule.phases.inter_expert;
    devices_.push_back(std::make_unique<OfDevice>(table, policy, schedule, loads,
                                                  static_cast<int32_t>(devices_.size())));
  }
}
LoadSimulation::~LoadSimulation() = default;

LoadSimulation::OfDevice* LoadSimulation::device_of(TaskId task) const {
  const Place place = schedule_.tasks[static_cast<size_t>(task)].place;
  for (const auto& device : devices_) {
    if (device->place == place && device->turns.of_task(task) != nullptr) return device.get();
  }
  return nullptr;
}

int32_t LoadSimulation::turns(TaskId task) const {
  const OfDevice* const device = device_of(task);
  return device == nullptr ? 1 : static_cast<int32_t>(device->turns.of_task(task)->count);
}

double LoadSimulation::share(TaskId task, int32_t turn) const {
  const OfDevice* const device = device_of(task);
  if (device == nullptr) return 1;
  const TravelTurns::Range& range = *device->turns.of_task(task);
  const auto blocks = [&](size_t at) {
    return static_cast<double>(device->turns.turns()[range.first + at].blocks.size());
  };
  double all = 0;
  for (size_t i = 0; i < range.count; ++i) all += blocks(i);
  if (all == 0) return 1 / static_cast<double>(range.count);  // nothing is expected at the device
  return blocks(static_cast<size_t>(turn)) / all;
}

void LoadSimulation::begin_step(std::span<const SimulatedTurn> tasks,
                                std::span<const DeviceLink> links, std::span<TaskLoad> loads,
                                const RoutedStep* routed) {
  tasks_ = tasks;
  links_ = links;
  loads_ = loads;
  routed_ = routed;
  has_begun_.assign(tasks.size(), 0);
  held_.clear();
  copies_.clear();
  for (const Task& task : schedule_.tasks) {  // as a run does (TravellingWeights::begin_step)
    if (!schedule_.rotates || task.kind != TaskKind::update) continue;
    for (const auto& device : devices_) {
      device->for_updated(task, [&](ItemId item) { device->loader.begin_update(item); });
    }
  }
  if (routed == nullptr) return;
  std::vector<double> of_task(schedule_.tasks.size());
  for (size_t n = 0; n < loads.size(); ++n) {
    of_task[static_cast<size_t>(tasks[n].task)] += loads[n].seconds;
  }
  whole_.clear();
  for (const SimulatedTurn& turn : tasks) whole_.push_back(of_task[static_cast<size_t>(turn.task)]);
  for (const RoutedStep::Foretold& experts : routed->foretold()) choose(experts);
}

/// As a run does it (TravellingWeights::begin_loads).
void LoadSimulation::begin(Stage& stage) {
  for (const auto& device : devices_) {
    device->loader.advance(0);
    want(*device, device->turns.at_begin().wants, stage);
  }
}

void LoadSimulation::want(OfDevice& device, const Wants& wants, Stage& stage) {
  for (const BlockWant& of : wants.load) {
    device.items.for_block(of.block, of.with_gradient, [&](ItemId item) {
      device.loader.want({item, of.priority, of.rank});
    });
  }
  carry_out(device, stage);
}

bool LoadSimulation::may_begin(int32_t task, Stage& stage) {
  if (is_ready(task, stage)) return true;
  held_.push_back(task);
  return false;
}

void LoadSimulation::release_held(Stage& stage) {
  // A task that is released may hold others back, which come to the end.
  for (size_t i = 0; i < held_.size();) {
    const int32_t task = held_[i];
    if (!is_ready(task, stage)) {
      ++i;
      continue;
    }
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    stage.release(task);
    i = 0;
  }
}

bool LoadSimulation::is_ready(int32_t number, Stage& stage) {
  const SimulatedTurn& turn = tasks_[static_cast<size_t>(number)];
  const Task& task = schedule_.tasks[static_cast<size_t>(turn.task)];
  if (task.kind == TaskKind::norm || task.kind == TaskKind::update) {
    return homes_are_ready(task, number, stage);
  }
  if (adds_at_host(task)) return accumulators_are_home(turn, number, stage);
  OfDevice* const device = device_of(turn.task);
  if (device == nullptr) return true;
  if (!turn_is_ready(*device, turn, stage)) return false;
  if (routed_ != nullptr && device->turns.decided(turn.task) != nullptr) {
    time_turn(*device, turn, number);
  }
  return true;
}

/// A turn takes the share of its experts' tokens.
void LoadSimulation::time_turn(const OfDevice& device, const SimulatedTurn& turn, int32_t number) {
  const RoutedStep::OfTask all = routed_->of_task(turn.task);
  const size_t position = device.turns.of_task(turn.task)->first + static_cast<size_t>(turn.turn);
  const std::vector<BlockId>& own = device.turns.turns()[position].blocks;
  int64_t of_turn = 0, of_task = 0;
  for (size_t i = 0; i < all.experts.size(); ++i) {
    of_task += all.choices[i];
    if (std::ranges::find(own, all.experts[i]) != own.end()) of_turn += all.choices[i];
  }
  const auto at = static_cast<size_t>(number);
  loads_[at].seconds =
      of_task == 0 ? 0 : whole_[at] * static_cast<double>(of_turn) / static_cast<double>(of_task);
}

/// The host adds to gradients that devices may have added to for earlier micro-batches. As a run does it
/// (TravellingWeights::begin_adding): they come home, then nothing loads them until the host has added.
bool LoadSimulation::accumulators_are_home(const SimulatedTurn& turn, int32_t number,
                                           Stage& stage) {
  enum : uint8_t { untouched, coming_home, changing };
  uint8_t& state = has_begun_[static_cast<size_t>(number)];
  bool are_home = true, are_read = false;
  for_accumulators(turn.task, [&](OfDevice& device, ItemId item) {
    uint8_t& comes_home = device.goes_home[static_cast<size_t>(item)];
    if (state == untouched) {
      if (comes_home++ == 0) ++device.going_home;
      device.loader.bring_home(item);
      carry_out(device, stage);
    }
    are_home = are_home && comes_home == 0 && !device.loader.is_held(item);
  });
  if (state == untouched) state = coming_home;
  if (!are_home && state == coming_home) return false;
  for_accumulators(turn.task, [&](OfDevice& device, ItemId item) {
    if (state == coming_home) device.loader.begin_update(item);
    are_read = are_read || device.loader.reads_home(item);
  });
  state = changing;
  return !are_read;
}

/// f(device, item): of the experts of a task, wherever they may travel.
template <class F>
void LoadSimulation::for_accumulators(TaskId task, const F& f) {
  for (const BlockId block : routed_->of_task(task).experts) {
    for (const auto& device : devices_) {
      if (!device->items.travels(block)) continue;
      const auto add = [&](BlockId of) {
        const ItemId item = device->items.find(of, Cargo::gradient);
        if (item >= 0) f(*device, item);
      };
      add(block);
      if (const auto adapter = device->items.adapter_of(block)) add(*adapter);
    }
  }
}

bool LoadSimulation::adds_at_host(const Task& task) const {
  return routed_ != nullptr && schedule_.is_decided(task) && schedule_.is_host(task.place) &&
         adds_gradients(task);
}

void LoadSimulation::choose(const RoutedStep::Foretold& of, size_t there) {
  OfDevice* const device = device_of(of.task);
  if (device != nullptr) device->turns.choose(of.task, of.experts, there);
}

void LoadSimulation::ask(const RoutedStep::Foretold& of, Priority priority, Stage& stage) {
  OfDevice* const device = device_of(of.task);
  if (device == nullptr) return;
  std::vector<Where> where;
  for (const BlockId block : device->turns.decided(of.task)->candidates) {
    where.push_back(device->loader.where(device->items.find(block, Cargo::weights)));
  }
  const Wants wants = device->turns.wants_of_split(of.task, of.experts, where, priority);
  for (const BlockId block : wants.drop) {
    device->items.for_block(block, true, [&](ItemId item) { device->loader.remove(item); });
  }
  want(*device, wants, stage);
}

/// As a run does it (TravellingWeights::foresee, foretell).
void LoadSimulation::decided(const RoutedStep::Decision& decision, Stage& stage) {
  for (const RoutedStep::Foretold& experts : decision.made) {
    const OfDevice* const device = device_of(experts.task);
    const auto is_there = [&](BlockId block) {
      return device->loader.where(device->items.find(block, Cargo::weights)) != Where::home;
    };
    const auto comes = device == nullptr ? experts.experts.begin()
                                         : std::ranges::find_if_not(experts.experts, is_there);
    choose(experts, static_cast<size_t>(comes - experts.experts.begin()));
    if (asks_for_splits_) ask(experts, Priority::expert, stage);
  }
  for (const RoutedStep::Foretold& experts : decision.foretold) {
    choose(experts);
    ask(experts, Priority::layer, stage);
  }
}

bool LoadSimulation::turn_is_ready(OfDevice& device, const SimulatedTurn& of, Stage& stage) {
  const TravelTurns::Range& range = *device.turns.of_task(of.task);
  const size_t position = range.first + static_cast<size_t>(of.turn);
  const TravelTurn& turn = device.turns.turns()[position];
  if (turn.blocks.empty()) return true;
  if (device.needs.empty()) {
    device.loader.advance(static_cast<Position>(position));
    for (size_t i = 0; i < turn.blocks.size(); ++i) {
      device.items.for_block(turn.blocks[i], true,
                             [&](ItemId item) { device.loader.expect(item, turn.next_use[i]); });
      device.items.for_block(turn.blocks[i], turn.with_gradient, [&](ItemId item) {
        const bool weights = device.items.item(item).cargo == Cargo::weights;
        device.needs.push_back({item, weights ? UseAccess::read : UseAccess::write});
      });
    }
    device.is_woken = device.has_asked = false;
    device.loader.demand(0, device.needs, Start::issued);
    carry_out(device, stage);
  }
  if (!device.is_woken) return false;
  if (!device.has_asked) {
    device.has_asked = true;
    want(device, device.turns.ahead(position).wants, stage);
  }
  return std::ranges::all_of(device.needs, [&](const Need& need) {
    return device.loader.where(need.item) == Where::here;
  });
}

/// Norms read gradients at home, and updates write homes that nothing reads.
bool LoadSimulation::homes_are_ready(const Task& task, int32_t number, Stage& stage) {
  const bool first = has_begun_[static_cast<size_t>(number)] == 0;
  has_begun_[static_cast<size_t>(number)] = 1;
  bool ready = true;
  for (const auto& device : devices_) {
    if (task.kind == TaskKind::norm) {
      for (const BlockUse& use : task.blocks) {
        device->items.for_items(use.begin, use.end, false, [&](ItemId item) {
          if (!first) return;
          if (device->goes_home[static_cast<size_t>(item)]++ == 0) ++device->going_home;
          device->loader.bring_home(item);
        });
      }
      if (first) carry_out(*device, stage);
      ready = ready && device->going_home == 0;
      continue;
    }
    if (first && !schedule_.rotates) {
      device->for_updated(task, [&](ItemId item) { device->loader.begin_update(item); });
      carry_out(*device, stage);
    }
    device->for_updated(task,
                        [&](ItemId item) { ready = ready && !device->loader.reads_home(item); });
  }
  return ready;
}

void LoadSimulation::ended(int32_t number, Stage& stage) {
  const SimulatedTurn& turn = tasks_[static_cast<size_t>(number)];
  const Task& task = schedule_.tasks[static_cast<size_t>(turn.task)];
  if (task.kind == TaskKind::update) {
    for (const auto& device : devices_) {
      device->for_updated(task, [&](ItemId item) {
        device->loader.updated(item, device->items.item(item).cargo == Cargo::gradient);
      });
      carry_out(*device, stage);
    }
    release_held(stage);
    return;
  }
  if (adds_at_host(task)) {
    for_accumulators(turn.task, [&](OfDevice& device, ItemId item) {
      device.loader.updated(item);
      carry_out(device, stage);
    });
    release_held(stage);
    return;
  }
  if (task.kind == TaskKind::decide && routed_ != nullptr) {
    const RoutedStep::Decision* const decision = routed_->decision(turn.task);
    if (decision != nullptr) decided(*decision, stage);
    release_held(stage);
    return;
  }
  OfDevice* const device = device_of(turn.task);
  if (device == nullptr) return;
  const TravelTurns::Range& range = *device->turns.of_task(turn.task);
  const TravelTurn& needed = device->turns.turns()[range.first + static_cast<size_t>(turn.turn)];
  if (needed.blocks.empty()) return;
  device->loader.end_use(0);
  device->needs.clear();
  for (const BlockId block : needed.last) device->bring_home(block);
  carry_out(*device, stage);
  release_held(stage);
}

void LoadSimulation::carry_out(OfDevice& device, Stage& stage) {
  while (const std::optional<LoadCommand> command = device.loader.next()) {
    const auto item = static_cast<size_t>(command->item);
    switch (command->kind) {
      case CommandKind::piece: {
        const Piece& piece = command->piece;
        if (piece.kind == PieceKind::clear) {
          device.loader.finished(piece.ticket);
          break;
        }
        const size_t direction = piece.kind == PieceKind::store ? kOut : kIn;
        device.lanes[direction].push_back(piece);
        if (device.lanes[direction].size() == 1) start_piece(device, direction, stage);
        break;
      }
      case CommandKind::wake: device.is_woken = true; break;
      case CommandKind::at_home:
        if (device.goes_home[item] == 0) break;
        device.goes_home[item] = 0;
        --device.going_home;
        break;
      default: break;  // what is dropped is of no interest; there is no shutdown and no shrinking
    }
  }
}

void LoadSimulation::start_piece(OfDevice& device, size_t direction, Stage& stage) {
  const Piece& piece = device.lanes[direction].front();
  if (piece.home_offset == 0) device.begun[static_cast<size_t>(piece.item)] = stage.now();
  TaskLoad load = links_[static_cast<size_t>(device.place)][direction];
  load.amount = static_cast<double>(piece.bytes);
  stage.pass(2 * device.number + static_cast<int32_t>(direction), load);
}

void LoadSimulation::passed(int32_t ticket, Stage& stage) {
  OfDevice& device = *devices_[static_cast<size_t>(ticket / 2)];
  const auto direction = static_cast<size_t>(ticket % 2);
  const Piece piece = device.lanes[direction].front();
  device.lanes[direction].pop_front();
  const TravelItem& item = device.items.item(piece.item);
  if (piece.home_offset + piece.bytes == item.layout.bytes) {
    const bool in = direction == kIn;
    copies_.push_back({item.block, item.cargo == Cargo::gradient, in ? kHostPlace : device.place,
                       in ? device.place : kHostPlace,
                       device.begun[static_cast<size_t>(piece.item)], stage.now(),
                       item.layout.bytes});
  }
  if (!device.lanes[direction].empty()) start_piece(device, direction, stage);
  device.loader.finished(piece.ticket);
  carry_out(device, stage);
  release_held(stage);
}

}  // namespace hearth
