#include "setup/measured_tables.h"

#include <algorithm>
#include <optional>

#include "base/stopwatch.h"
#include "base/system.h"
#include "runtime/link_profile.h"
#include "runtime/place_profile.h"

namespace hearth {
namespace {

constexpr double kLinkShare = 0.08;  // of the time, if there are links
constexpr uint64_t kMostDeviceBytes = uint64_t{4} << 30;
constexpr uint64_t kCopyBytes = uint64_t{32} << 20;  // of copies beside the tasks

/// A part of the time of a place.
struct Round {
  Compute dtype;
  int workers;
  double weight;
};

std::vector<Round> rounds_of(const TableRequest& request, int workers, bool fewer_cores) {
  std::vector<Round> rounds;
  for (const Compute dtype : request.dtypes) rounds.push_back({dtype, workers, 3});
  if (!fewer_cores) return rounds;
  for (int w = workers / 2; w > 0; w /= 2) rounds.push_back({request.dtypes.front(), w, 1});
  return rounds;
}

/// The workers of a place, those of all its compute streams together.
StreamTeam team_of(const OpenedModel& machine, Place at) {
  StreamTeam all{0, {}};
  for (const StreamTeam& team : machine.place(at).teams) {
    all.workers += team.workers;
    all.cores.insert(all.cores.end(), team.cores.begin(), team.cores.end());
  }
  if (all.workers == 0) return {machine.workers, machine.cores};
  return all;
}

BenchPlace bench_place(const OpenedModel& machine, Place at, int workers) {
  const ComputePlace& place = machine.place(at);
  const std::vector<int> cores = team_of(machine, at).cores;
  BenchPlace bench{*place.device, *place.ops, place.memory, at, workers, {}};
  if (cores.size() >= static_cast<size_t>(workers)) {
    bench.cores.assign(cores.begin(), cores.begin() + workers);
  }
  return bench;
}

std::optional<double> weighted_mean(const std::vector<std::pair<double, int64_t>>& values) {
  double sum = 0, weights = 0;
  for (const auto& [value, weight] : values) {
    sum += value * static_cast<double>(weight);
    weights += static_cast<double>(weight);
  }
  return weights > 0 ? std::optional(sum / weights) : std::nullopt;
}

class TableMaker {
 public:
  TableMaker(const OpenedModel& machine, const TableRequest& request)
      : machine_(machine), request_(request) {
    for (size_t at = 1; at < machine.devices.places.size(); ++at) {
      // A NUMA node is memory of the host, and has no link.
      const ComputePlace& place = machine.devices.places[at];
      if (place.memory != SpaceKind::host) devices_.push_back(place.device.get());
    }
  }

  std::vector<MeasuredTable> make() {
    std::vector<CostLink> links;
    uint64_t host_bytes = request_.host_bytes;
    if (!devices_.empty()) {
      report("links");
      links = measure_link_costs(devices_, kLinkShare * request_.seconds,
                                 std::min(kCopyBytes, host_bytes));
      host_bytes -= std::min(kCopyBytes, host_bytes);
    }
    std::vector<MeasuredTable> tables;
    const std::optional<BackgroundCopies> copies =
        devices_.empty() ? std::nullopt
                         : std::optional<BackgroundCopies>(std::in_place, devices_, kCopyBytes);
    const size_t places = machine_.devices.places.size();
    for (size_t at = 0; at < places && !ended_; ++at) {
      const ComputePlace& place = machine_.devices.places[at];
      const uint64_t bytes = place.memory == SpaceKind::host
                                 ? host_bytes
                                 : std::min(place.budget.bytes / 2, kMostDeviceBytes);
      // What a place takes beyond its part, the others do not have.
      const double seconds = left() / static_cast<double>(places - at);
      tables.push_back(measure(static_cast<Place>(at), seconds, bytes, links));
    }
    return tables;
  }

 private:
  double left() const { return request_.seconds - watch_.seconds(); }

  bool report(const std::string& what) {
    if (!request_.progress) return true;
    return request_.progress(what, std::min(1.0, watch_.seconds() / request_.seconds));
  }

  MeasuredTable measure(Place at, double seconds, uint64_t bytes,
                        const std::vector<CostLink>& links) {
    const Stopwatch watch;
    const ComputePlace& place = machine_.place(at);
    const auto rounds = rounds_of(request_, team_of(machine_, at).workers,
                                  at == kHostPlace && request_.fewer_cores);
    double weights = 0;
    for (const Round& round : rounds) weights += round.weight;
    MeasuredTable made;
    made.place = place.budget.name;
    std::vector<CostEntry> entries;
    std::vector<std::pair<double, int64_t>> spreads;  // with their points
    double setup_s = 0;
    for (const Round& round : rounds) {
      if (ended_) break;
      const bool first = &round == &rounds.front();
      const double part = (seconds - watch.seconds()) * round.weight / weights;
      weights -= round.weight;
      const std::string name = name_of_round(at, round);
      if (!first && part < 2 * setup_s) {
        made.left_out.push_back(name);
        continue;
      }
      const PlaceProfile profile = profile_round(at, round, part, bytes, first);
      setup_s = std::max(setup_s, profile.setup_s);
      for (const std::string& what : profile.left_out) {
        made.left_out.push_back(first ? what : name + ": " + what);
      }
      entries.insert(entries.end(), profile.entries.begin(), profile.entries.end());
      made.points += profile.points;
      made.samples += profile.samples;
      if (profile.spread) spreads.emplace_back(*profile.spread, profile.points);
    }
    made.spread = weighted_mean(spreads);
    std::vector<CostLink> own;
    for (const CostLink& link : links) {
      if (link.link == "host->" + made.place || link.link == made.place + "->host") {
        own.push_back(link);
      }
    }
    made.table = CostTable(std::move(entries), std::move(own), made.place);
    return made;
  }

  /// "f32", "f32, cores 2": the cores of a GPU are not the host's.
  std::string name_of_round(Place at, const Round& round) const {
    const std::string type = round.dtype == Compute::f32 ? "f32" : "bf16";
    if (!machine_.place(at).device->host_reaches()) return type;
    return type + ", cores " + std::to_string(round.workers);
  }

  /// `whole`: with the least table, whatever time it takes.
  PlaceProfile profile_round(Place at, const Round& round, double seconds, uint64_t bytes,
                             bool whole) {
    BenchPlace place = bench_place(machine_, at, round.workers);
    if (place.device.host_reaches()) {
      place.between_bytes = std::min(largest_cache_bytes(), bytes / 4);
      bytes -= place.between_bytes;
    }
    BenchSubject subject{{}, request_.settings, {true, round.dtype, DType::f32}, request_.longest};
    subject.settings.compute = round.dtype;
    // The rest is for values and scratch.
    subject.model = bench_model(request_.spec, request_.table, subject.policy, at, bytes / 2);
    ProfileOptions options;
    options.seconds = seconds;
    options.max_bytes = bytes;
    options.most_tokens = request_.most_tokens;
    options.whole = whole;
    if (place.device.host_reaches()) options.cores = round.workers;
    const std::string what = machine_.place(at).budget.name + ", " + name_of_round(at, round);
    options.progress = [&](double) {
      ended_ = !report(what);
      return !ended_;
    };
    return profile_place(place, subject, options);
  }

  const OpenedModel& machine_;
  const TableRequest& request_;
  std::vector<Device*> devices_;
  Stopwatch watch_;
  bool ended_ = false;
};

}  // namespace

std::vector<MeasuredTable> measure_tables(const OpenedModel& machine, const TableRequest& request) {
  return TableMaker(machine, request).make();
}

}  // namespace hearth
