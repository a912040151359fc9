// Which cores each stream of a run gets: never more workers than cores, no core twice, the counts that
// the user gave, and a warning where streams have to share.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <set>

#include "base/log.h"
#include "base/random.h"
#include "setup/run_devices.h"
#include "setup/stream_teams.h"
#include "support/all_op_sets.h"
#include "support/has.h"
#include "support/raises.h"

namespace hearth::test {
namespace {

std::vector<int> first_cpus(int n) {
  std::vector<int> cpus(static_cast<size_t>(n));
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

/// A machine whose cores, numbered from 0, are in nodes of the given sizes.
Topology machine_of(const std::vector<int>& cores_of_node) {
  Topology topology;
  topology.has_real_nodes = false;
  int cpu = 0;
  for (size_t n = 0; n < cores_of_node.size(); ++n) {
    const auto node = static_cast<int>(n);
    topology.nodes.push_back({node, uint64_t{1} << 30, node});
    topology.packages.push_back({node, "a test"});
    for (int i = 0; i < cores_of_node[n]; ++i) topology.cores.push_back({node, node, {cpu++}});
  }
  return topology;
}

TEST_CASE("stream teams: even shares, each core once, those near the device first") {
  for (int streams = 1; streams <= 6; ++streams) {
    for (int workers = 1; workers <= 9; ++workers) {
      for (const bool bound : {false, true}) {
        INFO(streams << " streams, " << workers << " workers" << (bound ? ", bound" : ""));
        const std::vector<int> cpus = bound ? first_cpus(workers) : std::vector<int>{};
        const std::vector<TeamRequest> requests(static_cast<size_t>(streams));
        const StreamTeams shared = share_workers(requests, cpus, workers);
        REQUIRE(shared.teams.size() == requests.size());
        if (streams > 1 && workers < streams) {
          CHECK(has(shared.warning, std::to_string(streams) + " compute streams share "));
          for (const StreamTeam& team : shared.teams) {
            CHECK(team.workers == 1);
            CHECK(team.cores.size() == (cpus.empty() ? 0 : 1));
          }
          continue;
        }
        CHECK(shared.warning.empty());
        int sum = 0, least = workers, most = 0;
        std::set<int> taken;
        size_t cores = 0;
        for (const StreamTeam& team : shared.teams) {
          sum += team.workers;
          least = std::min(least, team.workers);
          most = std::max(most, team.workers);
          CHECK(team.cores.size() == (bound ? static_cast<size_t>(team.workers) : 0));
          taken.insert(team.cores.begin(), team.cores.end());
          cores += team.cores.size();
        }
        CHECK(sum == workers);
        CHECK(least >= 1);
        CHECK(most - least <= 1);
        CHECK(taken.size() == cores);
        CHECK(std::ranges::includes(cpus, taken));
      }
    }
  }
  // Two devices below the second package, one below the first.
  const std::vector<TeamRequest> near = {{{4, 5, 6, 7}}, {{0, 1, 2, 3}}, {{4, 5, 6, 7}}};
  const StreamTeams shared = share_workers(near, first_cpus(6), 6);
  CHECK(shared.teams[0].cores == std::vector<int>{4, 5});
  CHECK(shared.teams[1].cores == std::vector<int>{0, 1});
  CHECK(shared.teams[2].cores == std::vector<int>{2, 3});  // what is left
}

std::vector<HostNode> nodes_of(const std::string& list, const Topology& topology,
                               const std::vector<int>& cpus, int workers) {
  return host_nodes(parse_device_list(list), topology, cpus, workers);
}

TEST_CASE("host nodes: all that have cores, or those of the list, each with its own cores") {
  const Topology topology = machine_of({2, 0, 3});  // node 1 has memory alone
  const auto all = nodes_of("host", topology, first_cpus(5), 5);
  REQUIRE(all.size() == 2);
  CHECK(all[0].number == 0);
  CHECK(all[0].cpus == std::vector<int>{0, 1});
  CHECK(all[0].workers == 2);
  CHECK(all[1].number == 2);
  CHECK(all[1].cpus == std::vector<int>{2, 3, 4});
  CHECK(all[1].workers == 3);
  CHECK_FALSE(all[0].bind);  // emulated

  const auto cpus = cpus_of_listed_nodes(parse_device_list("host:2"), topology, first_cpus(5));
  CHECK(cpus == std::vector<int>{2, 3, 4});
  const auto listed = nodes_of("host:2", topology, cpus, 3);
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].number == 2);
  CHECK(listed[0].cpus == cpus);

  // Each node has the cores that its item asks for.
  const auto some = nodes_of("host:0:cores=1,host:2:cores=2", topology, first_cpus(5), 5);
  REQUIRE(some.size() == 2);
  CHECK(some[0].cpus == std::vector<int>{0});
  CHECK(some[1].cpus == std::vector<int>{2, 3});
  const auto crowded = nodes_of("host:0:cores=3,host:2", topology, first_cpus(5), 5);
  CHECK(crowded[0].workers == 3);  // of two cores: unbound
  CHECK(crowded[0].cpus.empty());
  CHECK(crowded[1].workers == 3);

  // Memory is bound to real nodes, but not if one node is all that the machine has.
  Topology real = machine_of({2, 2});
  real.has_real_nodes = true;
  for (const HostNode& node : nodes_of("host", real, first_cpus(4), 4)) CHECK(node.bind);
  CHECK(nodes_of("host:1", real, {2, 3}, 2)[0].bind);
  Topology one = machine_of({2});
  one.has_real_nodes = true;
  CHECK_FALSE(nodes_of("host", one, first_cpus(2), 2)[0].bind);

  // Unbound workers are divided, and their sum stays.
  const auto unbound = nodes_of("host", real, {}, 5);
  REQUIRE(unbound.size() == 2);
  CHECK(unbound[0].workers + unbound[1].workers == 5);
  CHECK(unbound[0].cpus.empty());

  // A node without a worker computes nothing; a node of the list must have one.
  CHECK(nodes_of("host", real, {0, 1}, 2).size() == 1);
  CHECK(nodes_of("host", real, {}, 1).size() == 1);
  CHECK(raised_by([&] { nodes_of("host:0,host:1", real, {0, 1}, 2); }).says("--devices host:1"));
  CHECK(raised_by([&] {
          cpus_of_listed_nodes(parse_device_list("host:7"), real, first_cpus(4));
        }).says("this machine has nodes 0 and 1"));
  for (const auto& [machine, has_nodes] : {std::pair{machine_of({2}), "has node 0"},
                                           {machine_of({1, 1, 1}), "has nodes 0, 1 and 2"}}) {
    CHECK(raised_by([&, &t = machine] {
            cpus_of_listed_nodes(parse_device_list("host:9"), t, {0, 1});
          }).says(std::string("--devices host:9: no such NUMA node; this machine ") + has_nodes));
  }
  const Raised no_core = raised_by(
      [&] { cpus_of_listed_nodes(parse_device_list("host:1"), topology, first_cpus(5)); });
  CHECK(no_core.code == ExitCode::usage);
  CHECK(no_core.says("--devices host:1"));
}

struct Opened {
  RunDevices run;
  std::string warnings;
};
Opened open_on(const std::string& list, const Topology& topology, int workers = 0,
               const std::string& policy = "") {
  register_all_op_sets();
  Opened opened;
  set_warning_sink([&](const std::string& line) { opened.warnings += line + "\n"; });
  opened.run = open_devices({.devices = list,
                             .host_budget = uint64_t{1} << 30,
                             .cores = topology.worker_cpus(),
                             .workers = workers,
                             .policy = policy,
                             .topology = &topology});
  set_warning_sink({});
  return opened;
}

/// The teams of all places that compute.
std::vector<StreamTeam> computing_teams(const RunDevices& run) {
  std::vector<StreamTeam> teams;
  for (const Place at : run.of_model.all()) {
    const auto& of = run.places[static_cast<size_t>(at)].teams;
    teams.insert(teams.end(), of.begin(), of.end());
  }
  return teams;
}

TEST_CASE(
    "stream teams: workers of all streams together are no more than the cores, each core once") {
  for (const std::vector<int>& sizes : {std::vector<int>{8}, {4, 4}, {6, 10}, {3, 3, 3, 3}}) {
    const Topology topology = machine_of(sizes);
    const auto cores = static_cast<int>(topology.cores.size());
    for (const std::string list :
         {"host", "virtual", "virtual,host", "2xvirtual", "2xvirtual,host", "3xvirtual",
          "4xvirtual,host", "4xvirtual", "host:0", "virtual:cores=2,virtual",
          "virtual:cores=2,virtual:cores=1,host", "2xvirtual:cores=1,host:cores=3"}) {
      for (const int workers : {0, 5, 40}) {  // one per core, fewer, more
        INFO(list << " on " << sizes.size() << " nodes, " << cores << " cores, " << workers);
        const auto opened = open_on(list, topology, workers);
        const std::vector<StreamTeam> teams = computing_teams(opened.run);
        int sum = 0;
        size_t bound = 0;
        std::set<int> taken;
        for (const StreamTeam& team : teams) {
          CHECK(team.workers >= 1);
          sum += team.workers;
          bound += team.cores.size();
          taken.insert(team.cores.begin(), team.cores.end());
        }
        if (!opened.warnings.empty()) {
          CHECK(has(opened.warnings, "wait for each other"));
          continue;
        }
        const int most = list == "host:0" ? sizes.front() : cores;
        CHECK(sum <= (workers == 0 ? most : workers));
        CHECK(taken.size() == bound);  // no core in two teams
        CHECK(bound == (workers > most ? 0 : static_cast<size_t>(sum)));
      }
    }
  }
}

TEST_CASE("stream teams: counts by name are honoured") {
  const Topology topology = machine_of({4, 4});
  const RunDevices two = open_on("virtual:cores=3,virtual:cores=1,host:cores=2", topology).run;
  const auto team = [&](size_t place, size_t lane = 0) { return two.places[place].teams.at(lane); };
  REQUIRE(two.hosts == 1);  // the host's two cores are of the first node
  CHECK(team(1).workers == 3);
  CHECK(team(1).cores.size() == 3);
  CHECK(team(2).workers == 1);
  REQUIRE(two.places[0].teams.size() == 2);  // a stream for each device
  CHECK(team(0, 0).workers == 1);
  CHECK(team(0, 1).workers == 1);
  CHECK(two.workers == 2);
  // More than there are: they hold all the same, and places share cores.
  const RunDevices crowded = open_on("virtual:cores=8,host", topology).run;
  CHECK(crowded.places.at(1).teams.at(0).workers == 8);
  CHECK(crowded.workers == 1);
  CHECK(raised_by([&] { open_on("virtual:cores=65", topology); }).says("more than 64 cores"));
}

TEST_CASE("stream teams: devices share the nodes, and streams that share cores are told") {
  const Topology topology = machine_of({2, 2});
  const Opened enough = open_on("2xvirtual", topology);
  CHECK(enough.warnings == "");
  REQUIRE(enough.run.places.size() == 4);
  CHECK(enough.run.places[2].teams.at(0).cores == std::vector<int>{0, 1});
  CHECK(enough.run.places[3].teams.at(0).cores == std::vector<int>{2, 3});
  // A device and two streams of experts on each node of two cores.
  const Opened shared = open_on("2xvirtual,host", topology);
  CHECK(has(shared.warnings, "host: 3 compute streams share 2 cores: they wait for each other"));
  CHECK(has(shared.warnings, "host:1: 3 compute streams share 2 cores: they wait for each other"));
  for (const StreamTeam& team : computing_teams(shared.run)) {
    CHECK(team.workers == 1);
    CHECK(team.cores.size() == 1);
  }
  const Opened one = open_on("2xvirtual", machine_of({1}));
  CHECK(has(one.warnings, "host: 2 compute streams share 1 core: they wait for each other"));
}

TEST_CASE("stream teams: cores by name are told of where what shares them computes") {
  const Topology topology = machine_of({2});
  const auto warning = [&](const std::string& list, const std::string& policy = "") {
    return open_on(list, topology, 0, policy).warnings;
  };
  CHECK(warning("2xvirtual") == "");
  CHECK(warning("2xvirtual:cores=1") == "");  // divided alike; the host computes nothing
  CHECK(warning("virtual:cores=2") == "");
  CHECK(has(warning("2xvirtual:cores=1,host"), "2 cores asked for beside one for the host, of 2"));
  CHECK(has(warning("2xvirtual:cores=1", "mobius"), "beside one for the host"));
  CHECK(has(warning("virtual:cores=2,virtual"), "2 cores asked for beside one for the host"));
  CHECK(has(warning("virtual:cores=2,virtual:cores=1"), "3 cores asked for, of 2"));
}

TEST_CASE("stream teams: the workers of the host are those that its nodes ask for") {
  const RunDevices fewer = open_on("host:1:cores=1", machine_of({4, 4})).run;
  CHECK(fewer.workers == 1);
  CHECK(fewer.cores == std::vector<int>{4});
  const Opened more = open_on("host:1:cores=2", machine_of({1, 1}));
  CHECK(more.run.workers == 2);
  CHECK(more.run.cores.empty());
  CHECK(more.run.places[0].teams.at(0).workers == 2);
  CHECK(has(more.warnings,
            "host:1 asks for 2 cores of 1: its workers wait for each other, and are "
            "bound to no core"));
}

TEST_CASE("stream teams: the host has a share where it updates weights that travel") {
  const Topology topology = machine_of({6});
  for (const char* policy : {"mobius", "gpipe-offload", "roundpipe"}) {
    const RunDevices run = open_on("2xvirtual", topology, 0, policy).run;
    for (const ComputePlace& place : run.places) {
      INFO(policy << " " << place.budget.name);
      CHECK(place.teams.at(0).workers == 2);
      CHECK(place.teams.at(0).cores.size() == 2);
    }
  }
  // A device with cores of its own leaves all others to the host, as a GPU does.
  const RunDevices own = open_on("virtual:cores=1", topology, 0, "mobius").run;
  CHECK(own.places[0].teams.at(0).workers == 5);
}

TEST_CASE("stream teams: experts on the host are at every node that computes") {
  const Topology topology = machine_of({4, 4});
  const auto experts = [&](const std::string& list) {
    return open_on(list, topology).run.of_model.experts;
  };
  CHECK(experts("host") == std::vector<Place>{0, 1});
  CHECK(experts("host:1").empty());
  CHECK(experts("virtual,host") == std::vector<Place>{0, 1});
  CHECK(experts("virtual,host:1") == std::vector<Place>{0});
  CHECK(experts("2xvirtual").empty());
  const RunDevices one = open_on("virtual,host:1", topology).run;
  CHECK(one.hosts == 1);
  CHECK(one.cores == std::vector<int>{4, 5, 6, 7});
  CHECK(open_on("host", topology).run.names() == std::vector<std::string>{"host", "host:1"});
}

}  // namespace
}  // namespace hearth::test
