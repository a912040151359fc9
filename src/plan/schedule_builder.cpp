#include "plan/schedule_builder.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/arena.h"
#include "layers/divided.h"
#include "layers/linear.h"
#include "plan/addresses.h"
#include "plan/idle_tasks.h"

namespace hearth {

namespace {

// The device that a lane of a host is for.
Place device_of_lane(const std::vector<SchedulePlace>& places, Place host, int32_t lane) {
  const auto found = std::ranges::find_if(places, [&](const SchedulePlace& place) {
    return place.device && place.host == host && place.lane == lane;
  });
  return static_cast<Place>(found - places.begin());
}

// Each place has its compute streams; then, unless it is a host, one for copies in and one for copies
// out. If a rule decides, the host has one for control beside each of its compute streams.
std::vector<StreamPlan> streams_of(const std::vector<SchedulePlace>& places, bool decides) {
  std::vector<StreamPlan> streams;
  for (Place place = 0; place < std::ssize(places); ++place) {
    const auto& [rank, host, device, lanes, own_lane] = places[static_cast<size_t>(place)];
    const std::string at = place == kHostPlace ? "" : "place " + std::to_string(place) + " ";
    for (int32_t lane = 0; lane < lanes; ++lane) {
      const std::string of =
          lanes == 1 ? "" : " for place " + std::to_string(device_of_lane(places, host, lane));
      streams.push_back({at + "compute" + of, place, StreamUse::compute, lane});
      if (decides && place == kHostPlace) {
        streams.push_back({"control" + of, place, StreamUse::control, lane});
      }
    }
    if (place == host) continue;
    streams.push_back({at + "copy in", place, StreamUse::copy_in});
    streams.push_back({at + "copy out", place, StreamUse::copy_out});
  }
  return streams;
}

}  // namespace

ScheduleBuilder::ScheduleBuilder(const PlanInput& input, Pass pass, int64_t cache_rows)
    : input_(input) {
  schedule_.pass = pass;
  schedule_.micro_batches = input.micro_batches;
  schedule_.tokens = input.tokens;
  schedule_.longest = input.longest;
  schedule_.cache_rows = cache_rows;
  HEARTH_CHECK(input.places.size() == input.ops.size(), "schedule: a place without ops");
  HEARTH_CHECK(!input.divides_experts || !input.settings.partial_sums,
               "schedule: divided experts with partial sums");
  schedule_.places = input.places;
  schedule_.streams = streams_of(input.places, input.decides);
  schedule_.scratch.resize(input.ops.size());
  schedule_.decides = input.decides;
  if (input.decides) schedule_.expected = input.compute;
  schedule_.rotates = pass == Pass::train && input.rotates;
  if (pass == Pass::train && input.shards.ranks > 1) {
    schedule_.streams.push_back({"gradients", kHostPlace, StreamUse::collective});
    // One for all: the libraries that move such messages want one order of them.
    if (input.shards.direct) {
      schedule_.streams.push_back({"between devices", messages_place(), StreamUse::collective});
    }
  }
  if (pass == Pass::train && input.shards.group().divided()) {
    const bool apart = input.shards.group().ways_apart();
    if (apart) schedule_.streams.push_back({"rows out", kHostPlace, StreamUse::exchange});
    schedule_.streams.push_back({apart ? "rows back" : "rows", kHostPlace, StreamUse::exchange});
    HEARTH_CHECK(!apart || !input.shards.direct, "schedule: direct messages of attention ranks");
  }
}

BufferId ScheduleBuilder::new_buffer(const Port& port, const Key& key, BufferClass use,
                                     Place place) {
  const auto id = static_cast<BufferId>(schedule_.buffers.size());
  Buffer buffer;
  buffer.port = port;
  buffer.layer = std::get<1>(key);
  buffer.micro_batch = std::get<2>(key);
  buffer.use = use;
  buffer.place = place;
  buffer.bytes = align_up(port.bytes(input_.tokens));
  buffer.first = static_cast<TaskId>(schedule_.tasks.size());
  schedule_.buffers.push_back(buffer);
  newest_[key][place] = id;
  return id;
}

ScheduleBuilder::Key ScheduleBuilder::key_of(const Port& port, const Task& task,
                                             int32_t micro_batch) const {
  const ValueInfo& info = info_of(port.value);
  Place part = info.of_part || (info.routed && !task.part.guests) ? task.part.place : kWhole;
  if (info.routed && !info.of_part && sends_from_device(task)) part = kAway;
  return {port.value, info.scope == Scope::layer ? task.layer + port.layer_offset : -1,
          info.scope == Scope::step || info.of_group ? -1 : micro_batch, part};
}

/// Of a layer, if ranks share the experts: where this rank's are, and the rows that they read.
Place ScheduleBuilder::place_of_own_experts(int32_t layer, Phase phase) const {
  return input_.compute_place(input_.table.find_block(BlockKind::expert, layer, 0), phase);
}

/// Whether a task, which runs on the host, exchanges rows that are at a device: they pass the host.
bool ScheduleBuilder::sends_from_device(const Task& task) const {
  if (task.kind != TaskKind::send_rows && task.kind != TaskKind::return_rows) return false;
  return !input_.shards.direct && schedule_.is_device(place_of_own_experts(task.layer, task.phase));
}

Place ScheduleBuilder::messages_place() const {
  if (!input_.shards.direct) return kHostPlace;
  const auto device = std::ranges::find_if(schedule_.places, &SchedulePlace::device);
  HEARTH_CHECK(device != schedule_.places.end(), "schedule: direct messages without a device");
  return static_cast<Place>(device - schedule_.places.begin());
}

/// The rows that a copy for a task of ranks that share the experts carries.
ExpertPart ScheduleBuilder::exchanged_part(const Key& key, const Task& task) const {
  const bool away = std::get<3>(key) == kAway;
  if (!away && (!task.part.guests || !info_of(std::get<0>(key)).of_part)) return {};
  const auto experts = static_cast<int32_t>(input_.spec.experts);
  const auto [first, last] = input_.shards.experts(task.layer).own(experts);
  if (away) {
    return {.place = kAway, .experts = experts - (last - first), .guests = true};
  }
  return {.place = task.part.place, .experts = last - first, .guests = true};
}

int32_t ScheduleBuilder::stream_of(Place place, StreamUse use, Place for_place) const {
  const int32_t lane =
      schedule_.is_device(place) ? 0 : schedule_.places[static_cast<size_t>(for_place)].lane;
  for (size_t s = 0; s < schedule_.streams.size(); ++s) {
    const StreamPlan& stream = schedule_.streams[s];
    if (stream.place != place || stream.use != use) continue;
    const bool has_lanes = use == StreamUse::compute || use == StreamUse::control;
    if (!has_lanes || stream.lane == lane) return static_cast<int32_t>(s);
  }
  HEARTH_CHECK(false, "schedule: a place has no such stream");
  return 0;
}

/// The stream of a copy, and its place. A device carries what comes and goes; between two devices,
/// the one that receives. Between two nodes of a host it is the node that is not the first.
int32_t ScheduleBuilder::carrier_of(Place from, Place to, Place& carrier) const {
  const bool in = schedule_.is_device(to) || (!schedule_.is_device(from) && !schedule_.is_host(to));
  carrier = in ? to : from;
  return stream_of(carrier, in ? StreamUse::copy_in : StreamUse::copy_out, carrier);
}

/// Of a part also the offsets on the host, and the split, which say where its rows are; of columns of a
/// divided expert what says how many.
void ScheduleBuilder::add_copy(BufferId from, BufferId to, Phase phase, ExpertPart part,
                               int32_t micro_batch) {
  const Buffer source = schedule_.buffers[static_cast<size_t>(from)];
  Port port = source.port;
  port.layer_offset = 0;
  Task task;
  task.kind = TaskKind::copy;
  task.phase = phase;
  task.layer = source.layer;
  task.rows = rows_of(source.micro_batch);
  task.part = part;
  task.stream =
      carrier_of(source.place, schedule_.buffers[static_cast<size_t>(to)].place, task.place);
  const ExpertPart of_use = part.guests ? ExpertPart{} : part;  // these do not share a buffer
  port.access = Access::read;
  task.uses.push_back({from, port, of_use});
  port.access = Access::write;
  task.uses.push_back({to, port, of_use});
  for (const Value value : sizes_of_copy(port.value, part)) {
    const bool of_group = info_of(port.value).of_group;
    const Key key{value, source.layer, of_group ? micro_batch : source.micro_batch, kWhole};
    const BufferId id = newest_.at(key).at(schedule_.host_of(task.place));
    Port reads = schedule_.buffers[static_cast<size_t>(id)].port;
    reads.layer_offset = 0;
    reads.access = Access::read;
    task.uses.push_back({id, reads, {}});
  }
  schedule_.tasks.push_back(std::move(task));
}

void ScheduleBuilder::bring_for(const Port& port, const Key& key, const Task& task,
                                Place for_place) {
  const Place place = place_of_value(port.value, task.place);
  const auto it = newest_.find(key);
  const bool exists = it != newest_.end() && !it->second.empty();
  const bool at_devices_alone = exists && std::ranges::none_of(it->second, [&](const auto& of) {
                                  return schedule_.is_host(of.first) || of.first == for_place;
                                });
  if (schedule_.is_host(place) && for_place != place && at_devices_alone && !is_part(key)) {
    bring(port, key, task, for_place);
  }
  bring(port, key, task, place, for_place);
}

void ScheduleBuilder::bring(const Port& port, const Key& key, const Task& task, Place place,
                            Place rather_from) {
  if (port.access == Access::temporary || port.access == Access::write) return;
  if (std::get<3>(key) == kAway) return bring_away(port, key, task, place);
  if (is_part(key)) return bring_part(key, task, place);
  take_returned(key, task, place);
  auto it = newest_.find(key);
  if (it == newest_.end() || it->second.empty()) {
    if (info_of(port.value).routed) return gather_parts(key, task, place);
    const Place host = schedule_.host_of(place);
    if (place == host || !info_of(port.value).given) return;
    Port given = port;
    given.access = Access::read;
    new_buffer(given, key, BufferClass::given, host);
    it = newest_.find(key);
  }
  if (it->second.contains(place)) return;
  const auto near = it->second.find(rather_from);
  const BufferId from = (near != it->second.end() ? near : it->second.begin())->second;
  const Port whole = schedule_.buffers[static_cast<size_t>(from)].port;
  add_copy(from, new_buffer(whole, key, BufferClass::flow, place), task.phase,
           exchanged_part(key, task), task.rows.begin);
}

/// Of a value of this rank's rows at a device: those that other ranks compute come to the host once, for
/// all rounds. What comes back is written there.
void ScheduleBuilder::bring_away(const Port& port, const Key& key, const Task& task, Place place) {
  if (port.access == Access::update || newest_[key].contains(place)) return;
  bring_offsets(key, task, place);
  Key whole = key;
  std::get<3>(whole) = kWhole;
  const BufferId from = newest_.at(whole).begin()->second;
  const Port copied = schedule_.buffers[static_cast<size_t>(from)].port;
  add_copy(from, new_buffer(copied, key, BufferClass::flow, place), task.phase,
           exchanged_part(key, task));
}

/// Before the whole of a value is read: what other ranks made of this rank's rows joins what its own
/// experts did, if there are any.
void ScheduleBuilder::take_returned(const Key& key, const Task& task, Place place) {
  Key away = key;
  std::get<3>(away) = kAway;
  if (returned_.erase(away) == 0) return;
  const BufferId from = newest_.at(away).begin()->second;
  const Port port = schedule_.buffers[static_cast<size_t>(from)].port;
  std::map<Place, BufferId>& whole = newest_[key];
  if (whole.empty()) {
    new_buffer(port, key, BufferClass::flow, place);
  } else {
    whole.erase(std::next(whole.begin()), whole.end());
  }
  bring_offsets(key, task, place);
  add_copy(from, newest_.at(key).begin()->second, task.phase, exchanged_part(away, task));
}

/// Where the whole value is, nothing is copied: a part lies where it lies in the whole.
void ScheduleBuilder::bring_part(const Key& key, const Task& task, Place place) {
  std::map<Place, BufferId>& part = newest_[key];
  if (part.contains(place)) return;
  Key whole = key;
  std::get<3>(whole) = kWhole;
  const std::map<Place, BufferId>& at = newest_.at(whole);
  if (const auto here = at.find(place); here != at.end()) {
    part[place] = here->second;
    return;
  }
  bring_offsets(key, task, place);
  const BufferId from = at.begin()->second;
  const Port copied = schedule_.buffers[static_cast<size_t>(from)].port;
  add_copy(from, new_buffer(copied, key, BufferClass::flow, place), task.phase, task.part);
}

void ScheduleBuilder::bring_offsets(const Key& of, const Task& task, Place place) {
  const Port offsets{.value = Value::route_offsets};
  bring(offsets, {Value::route_offsets, std::get<1>(of), std::get<2>(of), kWhole}, task,
        schedule_.host_of(place));
}

/// The whole of a value that was written in parts: the other parts join the part at this place.
void ScheduleBuilder::gather_parts(const Key& key, const Task& task, Place place) {
  std::vector<std::pair<BufferId, ExpertPart>> elsewhere;
  std::optional<BufferId> whole;
  Key part = key;
  std::get<3>(part) = 0;
  Key end = key;
  std::get<3>(end) = std::numeric_limits<Place>::max();
  for (auto it = newest_.lower_bound(part); it != newest_.end() && it->first < end; ++it) {
    if (const auto here = it->second.find(place); here != it->second.end()) {
      whole = here->second;
    } else {
      elsewhere.emplace_back(it->second.begin()->second, part_of_.at(it->first));
    }
  }
  HEARTH_CHECK(!elsewhere.empty(), "schedule: a routed value is read before its parts are written");
  bring_offsets(key, task, place);
  if (!whole) {
    const Port port = schedule_.buffers[static_cast<size_t>(elsewhere.front().first)].port;
    whole = new_buffer(port, key, BufferClass::flow, place);
  }
  for (const auto& [from, of] : elsewhere) add_copy(from, *whole, task.phase, of);
  newest_[key] = {{place, *whole}};
}

/// Before a value, or a part of it, is written: what came before is no longer its latest version.
void ScheduleBuilder::forget_versions(const Key& key) {
  newest_[key].clear();
  if (!info_of(std::get<0>(key)).routed || std::get<3>(key) == kAway) return;
  if (std::get<3>(key) != kWhole) {
    Key whole = key;
    std::get<3>(whole) = kWhole;
    newest_.erase(whole);
    return;
  }
  Key end = key;
  std::get<3>(end) = kAway;
  newest_.erase(end);
  returned_.erase(end);
  std::get<3>(end) = std::numeric_limits<Place>::max();
  newest_.erase(newest_.upper_bound(key), newest_.lower_bound(end));
}

BufferId ScheduleBuilder::buffer_of(const Port& port, const Key& key, Place place) {
  const ValueInfo& info = info_of(port.value);
  if (port.access == Access::temporary || port.access == Access::write) {
    forget_versions(key);
    return new_buffer(port, key,
                      port.access == Access::write ? BufferClass::flow : BufferClass::temporary,
                      place);
  }
  const auto it = newest_.find(key);
  if (it != newest_.end()) {
    const BufferId id = it->second.at(place);
    if (port.access == Access::update) it->second = {{place, id}};  // other copies are stale
    return id;
  }
  const bool cached = port.access == Access::update && schedule_.cache_rows > 0;
  HEARTH_CHECK(info.given || cached,
               "schedule: nobody writes " + std::string(info.name) + " before it is read");
  return new_buffer(port, key, info.given ? BufferClass::given : BufferClass::cache, place);
}

bool PlanInput::experts_apart(int32_t layer) const {
  if (layer < 0 || layer >= spec.layers || !spec.has_experts(layer)) return false;
  if (decided(layer)) return true;
  const Place dense = compute_place(table.find_block(BlockKind::attention, layer));
  const BlockId first = table.find_block(BlockKind::expert, layer, 0);
  for (BlockId b = first; b < first + spec.experts; ++b) {
    if (compute_place(b) != dense) return true;
  }
  return false;
}

bool rounds_tokens(const ModelSpec& spec, const RunSettings& settings, const ParameterTable& table,
                   int32_t layer, Pass pass) {
  if (settings.compute != Compute::bf16) return false;
  const BlockId first = table.find_block(BlockKind::expert, layer, 0);
  const bool adapted = table.rank_of(first, first + static_cast<BlockId>(spec.experts)) > 0;
  return !adapted || !has_dropout(settings, pass);
}

/// Whether more than one place has experts of the layer.
bool ScheduleBuilder::divided(int32_t layer) const {
  if (layer < 0 || layer >= input_.spec.layers || !input_.spec.has_experts(layer)) return false;
  if (input_.decided(layer)) return true;
  const BlockId first = input_.table.find_block(BlockKind::expert, layer, 0);
  for (BlockId b = first; b < first + input_.spec.experts; ++b) {
    if (input_.compute_place(b) != input_.compute_place(first)) return true;
  }
  return false;
}

TaskShape ScheduleBuilder::shape_of(Phase phase, int32_t layer, Place place, ExpertPart part,
                                    int32_t segments) const {
  TaskShape shape{input_.spec, input_.settings, input_.table, schedule_.pass, phase, layer};
  shape.tokens = input_.tokens;
  shape.longest = input_.longest;
  shape.cache_rows = schedule_.cache_rows;
  shape.place = place;
  shape.part = part;
  shape.split_places = divided(layer) ? static_cast<int32_t>(input_.places.size()) : 0;
  shape.segments = segments;
  shape.decided = input_.decided(layer);
  shape.divides = input_.divides(layer, schedule_.pass);
  if (shape.decided && schedule_.pass == Pass::train) shape.samples = input_.samples;
  shape.rotates = schedule_.rotates;
  shape.norm.count = lanes_of_host();
  if (schedule_.pass == Pass::train && shape.moe()) {
    shape.ranks = input_.shards.experts(layer);
    shape.fetches = input_.shards.fetches(layer);
  }
  if (input_.experts_apart(layer)) {
    shape.away =
        place != input_.compute_place(input_.table.find_block(BlockKind::attention, layer));
    shape.sums = input_.sums(layer);
    shape.rounds = !shape.copies_rows() && input_.rounds(layer, schedule_.pass);
  }
  return shape;
}

bool ScheduleBuilder::writes(TaskKind kind, Phase phase, int32_t layer, const ExpertPart& part,
                             Place place) const {
  const std::vector<Port> ports = body_of(kind).ports(shape_of(phase, layer, place, part));
  return std::ranges::any_of(ports, [](const Port& port) { return port.access != Access::read; });
}

void ScheduleBuilder::add(TaskKind kind, Phase phase, int32_t layer, int32_t micro_batch,
                          Place place, Place for_place) {
  append(kind, shape_of(phase, layer, place), rows_of(micro_batch), for_place);
}

void ScheduleBuilder::add_update(int32_t layer, TaskShare share, Place place, Place for_place) {
  TaskShape shape = shape_of(Phase::forward, layer, place);
  shape.update = share;
  if (body_of(TaskKind::update).blocks(shape).empty()) return;
  append(TaskKind::update, shape, rows_of(-1), for_place);
  schedule_.updates = true;
}

void ScheduleBuilder::add_update_by_lanes(int32_t layer, Place place) {
  const SchedulePlace& at = schedule_.places[static_cast<size_t>(place)];
  const int32_t lanes = at.device ? 1 : at.lanes;
  for (int32_t share = 0; share < lanes; ++share) {
    // Shares are not equally large. With experts on the host, too, turns gain nothing: simulated.
    const int32_t turn = schedule_.decides ? 0 : std::max(0, layer);
    const int32_t lane = (share + turn) % lanes;
    const Place for_place = lanes == 1 ? place : device_of_lane(schedule_.places, at.host, lane);
    add_update(layer, {share, lanes}, place, for_place);
  }
}

void ScheduleBuilder::add_norms(Place place) {
  const int32_t lanes = schedule_.is_host(place) ? lanes_of_host() : 1;
  for (int32_t lane = 0; lane < lanes; ++lane) {
    TaskShape shape = shape_of(Phase::forward, norm_number(place, lane), place);
    shape.norm = {lane, lanes};
    if (body_of(TaskKind::norm).blocks(shape).empty()) continue;
    const Place for_place = lanes == 1 ? place : device_of_lane(schedule_.places, place, lane);
    append(TaskKind::norm, shape, rows_of(-1), for_place);
  }
}

void ScheduleBuilder::add_part(TaskKind kind, Phase phase, int32_t layer, int32_t micro_batch,
                               const ExpertPart& part, Place place, Place for_place) {
  append(kind, shape_of(phase, layer, place, part), rows_of(micro_batch), for_place);
}

void ScheduleBuilder::add_exchange(TaskKind kind, Phase phase, int32_t layer, RowRange rows,
                                   int32_t guest) {
  const ExpertPart part{.place = guest, .guests = guest >= 0};
  const bool direct = input_.shards.direct && kind != TaskKind::send_counts;
  const Place place = direct ? messages_place() : kHostPlace;
  append(kind, shape_of(phase, layer, place, part, rows.count()), rows, place);
  const RowsGo go = kind == TaskKind::return_rows ? RowsGo::back : RowsGo::out;
  schedule_.tasks.back().stream =
      direct ? stream_of(place, StreamUse::collective, place) : exchange_stream(go);
}

void ScheduleBuilder::add_collective(TaskKind kind, const LayersTogether& layers) {
  const Place place = messages_place();
  TaskShape shape = shape_of(Phase::forward, layers.first, place);
  shape.layers = layers.count;
  if (body_of(kind).blocks(shape).empty()) return;
  append(kind, shape, rows_of(-1), place);
}

void ScheduleBuilder::add_fetch(Phase phase, int32_t layer) {
  const Place place = messages_place();
  append(TaskKind::fetch, shape_of(phase, layer, place), rows_of(-1), place);
}

void ScheduleBuilder::add_guests(Phase phase, int32_t layer, RowRange rows, int32_t guest) {
  const ExpertPart part{.place = guest, .guests = true};
  const Place place = place_of_own_experts(layer, phase);
  append(TaskKind::experts, shape_of(phase, layer, place, part, rows.count()), rows, place);
}

void ScheduleBuilder::add_decide(int32_t layer, RowRange rows, Place dense) {
  const Place host = schedule_.host_of(dense);
  append(TaskKind::decide, shape_of(Phase::forward, layer, host, {}, rows.count()), rows, dense);
}

void ScheduleBuilder::add_foretell(int32_t layer, RowRange rows, Place dense) {
  const Place host = schedule_.host_of(dense);
  const TaskShape shape = shape_of(Phase::forward, layer, host, {}, rows.count());
  if (shape.samples != SampledRows::layer) return;
  for (int32_t m = rows.begin; m < rows.end; ++m) {
    add(TaskKind::sample, Phase::forward, layer, m, dense);
  }
  append(TaskKind::foretell, shape, rows, dense);
}

void ScheduleBuilder::add_experts(Phase phase, int32_t layer, RowRange rows, Place dense,
                                  std::span<const ExpertPart> parts) {
  const auto add = [&](const ExpertPart& part, RowRange some) {
    const ExpertPart own = parts.size() == 1 ? ExpertPart{} : part;
    append(TaskKind::experts, shape_of(phase, layer, part.place, own, some.count()), some, dense);
  };
  if (rows.count() == 1) {
    for (const ExpertPart& part : parts) add(part, rows);
    return;
  }
  const bool travel =
      input_.decided(layer) || input_.travels(input_.table.find_block(BlockKind::expert, layer, 0));
  const auto together = [&](const ExpertPart& part) {
    return travel || !schedule_.is_device(part.place);
  };
  // Devices first, so that they compute while the host waits for all of its rows.
  for (const ExpertPart& part : parts) {
    for (int32_t m = rows.begin; !together(part) && m < rows.end; ++m) add(part, rows_of(m));
  }
  for (const bool device : {true, false}) {
    for (const ExpertPart& part : parts) {
      if (together(part) && schedule_.is_device(part.place) == device) add(part, rows);
    }
  }
}

void ScheduleBuilder::add_pack(Phase phase, int32_t layer, RowRange rows, Place dense) {
  if (!input_.divides(layer, schedule_.pass)) return;
  append(TaskKind::pack, shape_of(phase, layer, schedule_.host_of(dense)), rows_of(rows.begin),
         dense);
}

void ScheduleBuilder::add_divided(Phase phase, int32_t layer, RowRange rows, Place dense) {
  if (!input_.divides(layer, schedule_.pass)) return;
  for (int32_t m = rows.begin; m < rows.end; ++m) {
    TaskShape shape = shape_of(phase, layer, dense, {.place = dense});
    shape.first_of_group = m == rows.begin;
    append(TaskKind::divided, shape, rows_of(m), dense);
  }
  const TaskShape at_host = shape_of(phase, layer, schedule_.host_of(dense));
  const bool adds = phase == Phase::backward &&
                    divided_bytes(input_.table, layer, input_.spec.expert_width,
                                  DividedPart::gradient, policy_of(input_.settings, true)) > 0;
  if (adds) append(TaskKind::join, at_host, rows_of(rows.end - 1), dense);
}

void ScheduleBuilder::keep_on_host(Value value, int32_t layer, int32_t micro_batch, TaskId stays) {
  const Key key{value, layer, micro_batch, kWhole};
  std::map<Place, BufferId>& at = newest_.at(key);
  const auto on_device = [&](const auto& version) { return schedule_.is_device(version.first); };
  if (std::ranges::all_of(at, on_device)) {
    const auto [device, from] = *at.begin();
    const Port port = schedule_.buffers[static_cast<size_t>(from)].port;
    add_copy(from, new_buffer(port, key, BufferClass::flow, schedule_.host_of(device)),
             Phase::forward);
  }
  for (const auto& version : at) {
    if (on_device(version)) left_[version.second] = tasks() + stays;
  }
  std::erase_if(at, on_device);
}

void ScheduleBuilder::bring_back(Value value, int32_t layer, int32_t micro_batch, Place device) {
  const Key key{value, layer, micro_batch, kWhole};
  const std::map<Place, BufferId>& at = newest_.at(key);
  if (at.contains(device)) return;
  const BufferId from = at.begin()->second;
  const Port port = schedule_.buffers[static_cast<size_t>(from)].port;
  add_copy(from, new_buffer(port, key, BufferClass::flow, device), Phase::backward);
}

void ScheduleBuilder::join(std::span<const BufferUse> uses) {
  const auto buffer = [&](size_t i) -> Buffer& {
    return schedule_.buffers[static_cast<size_t>(uses[i].buffer)];
  };
  const Port& port = buffer(0).port;
  const auto row = static_cast<size_t>(port.cols) * size_of(port.dtype);
  const size_t pitch = port.rows_per_token == 0
                           ? buffer(0).bytes
                           : static_cast<size_t>(rows_apart(port.rows(input_.tokens))) * row;
  const int32_t first = buffer(0).strip, strip = first < 0 ? strips_++ : first;
  for (size_t i = 0; i < uses.size(); ++i) {
    const int32_t before = i == 0 ? first : buffer(i).strip;
    HEARTH_CHECK(before == first, "schedule: a buffer lies beside others already");
    buffer(i).strip = strip;
    buffer(i).pitch = pitch;
  }
}

void ScheduleBuilder::append(TaskKind kind, const TaskShape& shape, RowRange rows,
                             Place for_place) {
  const Body& body = body_of(kind);
  Task task;
  task.kind = kind;
  task.place = shape.place;
  const bool is_control =
      schedule_.decides &&
      (kind == TaskKind::decide || kind == TaskKind::foretell ||
       kind == TaskKind::pack);  // beside the host's experts, ahead of the device
  const bool is_collective = kind == TaskKind::reduce || kind == TaskKind::gather ||
                             kind == TaskKind::give ||
                             kind == TaskKind::fetch;  // in this order on all ranks
  task.stream = stream_of(shape.place,
                          is_control      ? StreamUse::control
                          : is_collective ? StreamUse::collective
                                          : StreamUse::compute,
                          for_place);
  task.phase = shape.phase;
  task.layer = shape.layer;
  task.rows = rows;
  task.part = shape.part;
  task.blocks = body.blocks(shape);
  task.work = body.work(shape);
  for (const BlockUse& use : task.blocks) {
    for (BlockId b = use.begin; b < use.end; ++b) {
      const bool reads =
          use.access == BlockAccess::read_weights || use.access == BlockAccess::add_gradient;
      const Place at = reads ? input_.compute_place(b, shape.phase) : input_.table.block(b).place;
      // Those of all ranks pass the host, wherever they are, unless they go directly.
      const bool decided =
          kind == TaskKind::experts || kind == TaskKind::pack || kind == TaskKind::join;
      const bool either = (decided && shape.decided) || kind == TaskKind::reduce ||
                          kind == TaskKind::give || kind == TaskKind::fetch;
      HEARTH_CHECK(at == shape.place || either,
                   "schedule: a block is at another place than its task: " + describe(task));
    }
  }
  std::vector<Port> ports = body.ports(shape);
  const auto end_of = [&](const Port& port) {
    return rows.begin + static_cast<int32_t>(task.uses_of(port.value));
  };
  for (int32_t m = rows.begin; m == rows.begin || m < rows.end; ++m) {
    for (const Port& port : ports) {
      if (m < end_of(port)) bring_for(port, key_of(port, task, m), task, for_place);
    }
  }
  for (Port& port : ports) {
    for (int32_t m = rows.begin; m < end_of(port); ++m) {
      const Key key = key_of(port, task, m);
      const bool part = is_part(key);
      if (std::get<3>(key) == kAway && port.access != Access::read) {
        // The first round makes a buffer for what comes back.
        port.access = returned_.insert(key).second ? Access::write : Access::update;
      }
      if (part) part_of_[key] = task.part;
      task.uses.push_back({buffer_of(port, key, place_of_value(port.value, shape.place)), port,
                           part ? task.part : ExpertPart{}});
    }
    const size_t uses = task.uses_of(port.value);
    if (uses > 1) join(std::span(task.uses).last(uses));
  }
  const auto at = static_cast<size_t>(shape.place);
  ScratchNeed& scratch = is_collective ? schedule_.sums_scratch : schedule_.scratch[at];
  scratch = max_of(scratch, body.scratch(shape, *input_.ops[at]));
  schedule_.list_bytes = std::max(schedule_.list_bytes, body.lists(shape));
  schedule_.tasks.push_back(std::move(task));
}

/// What a copy writes lives before its reader: while its place computes the experts before, if its
/// source is written by then. So it comes meanwhile, and does not wait for what lies there. Not what
/// backward brings back, whose source was written long before.
void ScheduleBuilder::begin_early() {
  std::vector<Buffer>& buffers = schedule_.buffers;
  constexpr TaskId kNone = -1;
  std::vector<TaskId> written(buffers.size(), kNone);    // the last to do it, copies apart
  std::vector<TaskId> experts(schedule_.places.size());  // the last at a place
  for (TaskId id = 0; id < std::ssize(schedule_.tasks); ++id) {
    const Task& task = schedule_.tasks[static_cast<size_t>(id)];
    if (task.kind == TaskKind::copy) {
      const TaskId source = written[static_cast<size_t>(task.uses[0].buffer)];
      written[static_cast<size_t>(task.uses[1].buffer)] = source;
      if (source == kNone || schedule_.tasks[static_cast<size_t>(source)].phase != task.phase) {
        continue;
      }
      Buffer& to = buffers[static_cast<size_t>(task.uses[1].buffer)];
      to.first = std::min(to.first, std::max(source, experts[static_cast<size_t>(to.place)]));
      continue;
    }
    if (task.kind == TaskKind::experts || task.kind == TaskKind::mlp) {
      experts[static_cast<size_t>(task.place)] = id;
    }
    for (const BufferUse& use : task.uses) {
      if (use.port.access != Access::read) written[static_cast<size_t>(use.buffer)] = id;
    }
  }
}

/// What comes to a host for its part of one split alone need not come if the part has no token: such
/// copies read the split, too.
void ScheduleBuilder::let_copies_be_idle() {
  if (!schedule_.decides) return;
  const std::map<BufferId, TaskId> decisions = decisions_by_split(schedule_);
  constexpr BufferId kNone = -1, kSeveral = -2;
  std::vector<BufferId> splits(schedule_.buffers.size(), kNone);  // of who reads a buffer
  for (const Task& task : schedule_.tasks) {
    BufferId split = kSeveral;
    if (task.kind != TaskKind::copy && schedule_.may_be_idle(task)) {
      for (const BufferUse& use : task.uses) {
        if (use.port.value == Value::split && split == kSeveral) split = use.buffer;
      }
    }
    for (size_t i = 0; i < task.uses.size(); ++i) {
      if (task.kind == TaskKind::copy && i == 1) continue;  // what the copy writes
      BufferId& of = splits[static_cast<size_t>(task.uses[i].buffer)];
      const bool same =
          of == kNone || (of >= 0 && split >= 0 && decisions.at(of) == decisions.at(split));
      of = same ? split : kSeveral;
    }
  }
  for (Task& task : schedule_.tasks) {
    if (task.kind != TaskKind::copy || !task.part.all() || task.uses.size() > 2) continue;
    const BufferId target = task.uses[1].buffer, split = splits[static_cast<size_t>(target)];
    const Buffer& to = schedule_.buffers[static_cast<size_t>(target)];
    if (split < 0 || !schedule_.is_host(to.place) || info_of(to.port.value).kept) continue;
    Port port = schedule_.buffers[static_cast<size_t>(split)].port;
    port.access = Access::read;
    task.uses.push_back({split, port, {}});
  }
}

void ScheduleBuilder::set_lifetimes() {
  begin_early();
  std::vector<Buffer>& buffers = schedule_.buffers;
  const auto end = static_cast<TaskId>(schedule_.tasks.size()) - 1;
  std::vector<bool> made_forward(buffers.size());
  for (TaskId id = 0; id <= end; ++id) {
    const Task& task = schedule_.tasks[static_cast<size_t>(id)];
    for (const BufferUse& use : task.uses) {
      const auto b = static_cast<size_t>(use.buffer);
      buffers[b].last = id;
      if (task.place == buffers[b].place) {
        buffers[b].lane = schedule_.streams[static_cast<size_t>(task.stream)].lane;
      }
      if (use.port.access == Access::write) {
        made_forward[b] = task.phase != Phase::backward && task.kind != TaskKind::head;
      } else if (task.phase == Phase::backward && made_forward[b]) {
        buffers[b].use = BufferClass::saved;
      }
    }
  }
  for (const auto& [id, task] : left_) {
    Buffer& buffer = buffers[static_cast<size_t>(id)];
    buffer.last = std::max(buffer.last, std::min(task, end));
  }
  // Buffers of a strip live equally long.
  std::vector<std::pair<TaskId, TaskId>> lives(static_cast<size_t>(strips_), {end, 0});
  for (const Buffer& buffer : buffers) {
    if (buffer.strip < 0) continue;
    auto& [first, last] = lives[static_cast<size_t>(buffer.strip)];
    first = std::min(first, buffer.first);
    last = std::max(last, buffer.last);
  }
  for (Buffer& buffer : buffers) {
    if (buffer.strip >= 0) {
      std::tie(buffer.first, buffer.last) = lives[static_cast<size_t>(buffer.strip)];
    }
    // Inputs are written before the first task, caches outlive the step, results are read after it.
    const bool given = buffer.use == BufferClass::given || buffer.use == BufferClass::cache;
    const bool kept = info_of(buffer.port.value).kept && schedule_.is_host(buffer.place);
    if (given) buffer.first = 0;
    if (given || kept) buffer.last = end;
  }
}

Schedule ScheduleBuilder::finish() {
  for (auto& [key, places] : newest_) {
    if (!info_of(std::get<0>(key)).kept || places.empty()) continue;
    const auto [place, from] = *places.begin();
    const Place host = schedule_.host_of(place);
    if (places.contains(host)) continue;
    const Port port = schedule_.buffers[static_cast<size_t>(from)].port;
    add_copy(from, new_buffer(port, key, BufferClass::flow, host), Phase::forward);
  }
  let_copies_be_idle();
  set_lifetimes();
  schedule_.arena_bytes = assign_addresses(schedule_.buffers, input_.ops.size());
  validate(schedule_);
  return std::move(schedule_);
}

}  // namespace hearth
