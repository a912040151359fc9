#include <catch2/catch_test_macros.hpp>

#include "device/device_list.h"
#include "support/raises.h"

using namespace hearth;

namespace {

std::string names_of(std::string_view text) {
  std::string names;
  for (const DeviceItem& item : parse_device_list(text)) names += item.name() + " ";
  return names;
}

bool is_refused(std::string_view text, const std::string& part) {
  const auto raised = test::raised_by([&] { parse_device_list(text); });
  INFO(text << ": " << raised.message);
  CHECK(raised.code == ExitCode::usage);
  CHECK(raised.says(part));
  return raised.code == ExitCode::usage && raised.says(part);
}

}  // namespace

TEST_CASE("device lists name devices in order") {
  CHECK(names_of("auto") == "auto ");
  CHECK(names_of("host") == "host ");
  CHECK(names_of("cuda:0") == "cuda:0 ");
  CHECK(names_of("cuda:1,host,cuda:0") == "cuda:1 host cuda:0 ");
  CHECK(names_of("virtual") == "virtual:0 ");
  CHECK(names_of("3xvirtual:mem=8G,host,virtual") ==
        "virtual:0 virtual:1 virtual:2 host virtual:3 ");
  CHECK(names_of("1xcuda:2") == "cuda:2 ");
  CHECK(names_of("cuda:1023") == "cuda:1023 ");
}

TEST_CASE("a virtual device is read with all its keys") {
  const auto items = parse_device_list(
      "virtual:mem=8Gi/h2d=12G/d2h=10.5G/latency=10us/cores=2/root=left/root-bw=20G");
  REQUIRE(items.size() == 1);
  CHECK(items[0].kind == DeviceKind::virtual_device);
  const DeviceKeys& keys = items[0].keys;
  CHECK(keys.memory == uint64_t{8} << 30);
  CHECK(keys.h2d == 12e9);
  CHECK(keys.d2h == 10.5e9);
  CHECK(keys.latency == 1e-5);  // as a plan prints it
  CHECK(keys.cores == 2);
  CHECK(keys.root == "left");
  CHECK(keys.root_bandwidth == 20e9);
  CHECK(parse_device_list("virtual:latency=2ms")[0].keys.latency == 2e-3);
  CHECK(parse_device_list("virtual:latency=0.5")[0].keys.latency == 0.5);
  CHECK(parse_device_list("virtual:latency=1s")[0].keys.latency == 1);
}

TEST_CASE("device lists that make no sense are refused with what is wrong") {
  for (const char* text :
       {"", "gpu", "host,", ",host", "cuda", "virtualx", "3x", "x3host", "HOST"}) {
    CHECK(is_refused(text, "expected auto, host[:N], cuda:N or virtual[:key=value/...]; 3x"));
  }
  for (const char* text : {"cuda:", "cuda:-1", "cuda:x", "cuda:1024", "cuda:0x1"}) {
    CHECK(is_refused(text, "expected cuda:N, N from 0 to 1023"));
  }
  for (const char* text : {"0xvirtual", "65xvirtual", "99999999999999999999xhost"}) {
    CHECK(is_refused(text, "repeated 1 to 64 times"));
  }
  CHECK(is_refused("40xvirtual,40xvirtual", "more than 64 devices"));
  CHECK(is_refused("auto,host", "auto stands alone"));
  CHECK(is_refused("2xauto", "auto stands alone"));
  CHECK(is_refused("host,host", "host twice"));
  CHECK(is_refused("2xcuda:1", "cuda:1 twice"));
  for (const char* text : {"virtual:", "virtual:mem", "virtual:mem=1G/", "virtual:/mem=1G"}) {
    CHECK(is_refused(text, "expected key=value"));
  }
  CHECK(is_refused("virtual:speed=1", "unknown key 'speed'"));
  CHECK(is_refused("virtual:mem=1G/mem=2G", "'mem' is given twice"));
  for (const char* value : {"", "0", "-1", "8X", "1e400G"}) {
    CHECK(is_refused("virtual:mem=" + std::string(value), "mem=: expected bytes"));
    CHECK(is_refused("virtual:h2d=" + std::string(value), "h2d=: expected bytes per second"));
    CHECK(is_refused("virtual:d2h=" + std::string(value), "d2h=: expected bytes per second"));
    CHECK(is_refused("virtual:root=a/root-bw=" + std::string(value), "root-bw=: expected bytes"));
  }
  for (const char* value : {"", "-1us", "61s", "nan", "1h"}) {
    CHECK(is_refused("virtual:latency=" + std::string(value), "latency=: expected a time"));
  }
  for (const char* value : {"", "0", "1.5", "-1"}) {
    CHECK(is_refused("virtual:cores=" + std::string(value), "cores=: expected a number of cores"));
  }
  CHECK(is_refused("virtual:root=/root-bw=1G", "root=: expected a name"));
  CHECK(is_refused("virtual:root=a b/root-bw=1G", "root=: expected a name"));
  CHECK(is_refused("virtual:root=\xc3\xa4/root-bw=1G", "root=: expected a name"));
  CHECK(is_refused("virtual:root-bw=1G", "virtual:0: root-bw= without root="));
  CHECK(is_refused("virtual:root=a/root-bw=1G,virtual:root=a/root-bw=2G", "two values"));
  for (const char* item : {"virtual", "host"}) {
    const std::string key = std::string(item) + ":costs=";
    CHECK(is_refused(key, "costs=: expected the path of a cost table"));
    CHECK(is_refused(key + "a\nb", "costs=: expected the path of a cost table"));
    CHECK(is_refused(std::string(item) + ":costs", "expected key=value"));
  }
  CHECK(is_refused("virtual:cost=a", "unknown key 'cost'"));
  CHECK(is_refused("host:mem=1G", "unknown key 'mem'; the host has cores, costs"));
  CHECK(is_refused("host:cores=0", "cores=: expected a number of cores"));
  CHECK(is_refused("host:cores=1/cores=1", "'cores' is given twice"));
  CHECK(is_refused("host:", "expected key=value"));
  CHECK(is_refused("host:cores=1,host", "host twice"));
  CHECK(is_refused("host:1,host:1", "host:1 twice"));
  CHECK(is_refused("2xhost:1", "host:1 twice"));
  for (const char* list : {"host,host:1", "host:1,virtual,host:cores=2"}) {
    CHECK(is_refused(list, "host and host:1: host means all NUMA nodes; list host or its nodes"));
  }
  for (const char* text : {"host:1024", "host:99999999999999999999", "host:1024:cores=1"}) {
    CHECK(is_refused(text, "expected host:N, N from 0 to 1023"));
  }
  for (const char* text : {"host:-1", "host:1x", "host:1.5", "host::", "host:1:", "host:1:2",
                           "host:1:cores", "host:1/cores=1", "host: 1"}) {
    CHECK(is_refused(text, "expected key=value"));
  }
  for (const char* text : {"host:-1", "host:a", "host:"}) {
    CHECK(is_refused(text, "expected key=value or the number of a NUMA node, 0 to 1023, found '"));
  }
  CHECK(is_refused("host:cores=1/a", "expected key=value between slashes, found 'a'"));
  CHECK(is_refused("virtual:0", "expected key=value, found '0'; virtual devices have no numbers"));
  CHECK(is_refused("virtual:mem", "expected key=value between slashes, found 'mem'"));
  for (const char* value :
       {"", "2", "2:", ":1G", "0:1G", "-1:1G", "1.5:1G", "2:0", "2:x", "2:1G:3"}) {
    CHECK(is_refused("virtual:shrink=" + std::string(value), "shrink=: expected STEP:BYTES"));
  }
  for (const char* keys : {"mem=1G/shrink=2:1Gi", "shrink=2:1Gi/mem=1G"}) {
    CHECK(is_refused("virtual:" + std::string(keys), "shrink= is more than mem="));
  }
  CHECK(is_refused("host:shrink=2:1G", "unknown key 'shrink'"));
  CHECK(is_refused("host:1:mem=1G", "unknown key 'mem'; the host has cores, costs"));
}

TEST_CASE("NUMA nodes of the host are places of their own") {
  CHECK(names_of("host:0,host:3") == "host:0 host:3 ");
  CHECK(names_of("virtual,host:1023") == "virtual:0 host:1023 ");
  const auto items = parse_device_list("host:1:cores=2/costs=a:1/b.json,host:007,virtual");
  REQUIRE(items.size() == 3);
  CHECK(items[0].kind == DeviceKind::host);
  CHECK(items[0].number == 1);
  CHECK(items[0].keys.cores == 2);
  CHECK(items[0].keys.costs == "a:1/b.json");
  CHECK(items[1].name() == "host:7");
  CHECK(is_refused("host:7,host:007", "host:7 twice"));
  CHECK(parse_device_list("host")[0].number == kAllNodes);
  CHECK(parse_device_list("host:cores=1")[0].number == kAllNodes);
}

TEST_CASE("a budget falls at a step") {
  const auto items =
      parse_device_list("2xvirtual:mem=8G/shrink=100:6Gi,virtual:shrink=1:8,virtual");
  REQUIRE(items.size() == 4);
  for (const size_t i : {0, 1}) {
    REQUIRE(items[i].keys.shrink);
    CHECK(items[i].keys.shrink->step == 100);
    CHECK(items[i].keys.shrink->bytes == uint64_t{6} << 30);
  }
  CHECK(items[2].keys.shrink->step == 1);
  CHECK(items[2].keys.shrink->bytes == 8);
  CHECK_FALSE(items[3].keys.shrink);
  CHECK(
      parse_device_list("virtual:mem=8/shrink=1:8")[0].keys.shrink);  // no change is none too many
}

TEST_CASE("costs= is the last key of its item, up to the comma") {
  const auto items = parse_device_list(
      "virtual:mem=8G/costs=/a/b=c/mem=2 ä.json,host:cores=2/costs=../h.json,virtual:costs=costs=");
  REQUIRE(items.size() == 3);
  CHECK(items[0].keys.memory == uint64_t{8000000000});
  CHECK(items[0].keys.costs == "/a/b=c/mem=2 ä.json");
  CHECK(items[1].kind == DeviceKind::host);
  CHECK(items[1].name() == "host");
  CHECK(items[1].keys.cores == 2);
  CHECK(items[1].keys.costs == "../h.json");
  CHECK(items[2].keys.costs == "costs=");
  for (const DeviceItem& item : parse_device_list("3xvirtual:costs=t.json")) {
    CHECK(item.keys.costs == "t.json");
  }
  CHECK(parse_device_list("host")[0].keys.costs.empty());
}

TEST_CASE("more workers than cores share the cores, and named numbers hold all the same") {
  const auto share = [](const std::string& list, int workers) {
    return share_host(parse_device_list(list), {0, 1}, workers);
  };
  const VirtualShares shares = share("virtual:cores=3,virtual,host", 8);
  CHECK(shares.devices[0].workers == 3);
  CHECK(shares.devices[0].cores.empty());  // unbound
  CHECK(shares.devices[1].workers == 0);
  CHECK(shares.host_workers == 5);
  CHECK(shares.host_cpus.empty());
  CHECK(share("virtual:cores=3,host:cores=2", 8).host_workers == 2);
  CHECK(share("host", 8).host_workers == 8);
  CHECK(share_host(parse_device_list("virtual"), {}).host_workers == 1);  // never none
  // Fewer workers than cores have the first ones.
  CHECK(share("host", 1).host_cpus == std::vector<int>{0});
  CHECK(share("virtual:cores=1", 2).devices[0].cores == std::vector<int>{1});
  CHECK(share("virtual:cores=1", 2).devices[0].workers == 1);
  CHECK(share("virtual:cores=1", 2).host_workers == 1);
  // More than there are: they share, and the host has at least one.
  CHECK(share("virtual:cores=8", 8).devices[0].workers == 8);
  CHECK(share("virtual:cores=8", 8).host_workers == 1);
  CHECK(share("virtual:cores=8", 8).warning ==
        "the devices: 8 cores asked for beside one for the host, of 8: places share cores and wait "
        "for each other");
  const VirtualShares one = share("virtual:cores=1", 1);
  CHECK(one.devices[0].cores == std::vector<int>{0});
  CHECK(one.host_cpus == std::vector<int>{0});
  CHECK(share("virtual:cores=4,host:cores=5", 8).host_workers == 5);
  CHECK(share("virtual:cores=4,host:cores=4", 8).warning.empty());
}

TEST_CASE("cores asked for by name are at most four per core of the machine, or 64") {
  const auto raised = [](const std::string& list, size_t machine_cores) {
    return test::raised_by([&] { check_asked_cores(parse_device_list(list), machine_cores); });
  };
  CHECK(raised("virtual:cores=64", 2).message.empty());
  CHECK(raised("2xvirtual:cores=30,host:cores=4", 16).message.empty());
  CHECK(raised("virtual:cores=80", 20).message.empty());
  for (const char* list :
       {"virtual:cores=65", "host:1:cores=65", "2xvirtual:cores=30,host:cores=5",
        "virtual:cores=4096", "virtual:cores=99999", "64xvirtual:cores=9000000000000000000"}) {
    INFO(list);
    const auto refused = raised(list, 2);
    CHECK(refused.code == ExitCode::usage);
    CHECK(refused.says("cores= asks for more than 64 cores in all, the most on a machine with 2 "));
  }
  CHECK(raised("virtual:cores=81", 20).says("more than 80 cores in all"));
}

TEST_CASE("virtual devices take cores from the host, and share what they name alike") {
  const auto items = parse_device_list(
      "virtual:cores=2/root=a/root-bw=1G,host,virtual:root=a/mem=5,2xvirtual:cores=1/h2d=7");
  const VirtualShares shares = share_host(items, {0, 1, 2, 3, 4, 5});
  REQUIRE(shares.devices.size() == 4);
  CHECK(shares.devices[0].cores == std::vector<int>{4, 5});
  CHECK(shares.devices[1].cores.empty());
  CHECK(shares.devices[2].cores == std::vector<int>{3});
  CHECK(shares.devices[3].cores == std::vector<int>{2});
  CHECK(shares.host_cpus == std::vector<int>{0, 1});
  CHECK(shares.devices[0].root != nullptr);
  CHECK(shares.devices[0].root == shares.devices[1].root);
  CHECK(shares.devices[2].root == nullptr);
  const VirtualShares named = share_host(parse_device_list("2xvirtual:root=a"), {0});
  CHECK(named.devices[0].root == nullptr);  // a place alone, without a limit
  CHECK(shares.devices[0].fabric != nullptr);
  CHECK(shares.devices[0].fabric == shares.devices[3].fabric);
  CHECK(shares.devices[0].memory == UINT64_MAX);
  CHECK(shares.devices[1].memory == 5);
  CHECK(shares.devices[2].h2d == 7);
  CHECK(shares.devices[3].name == "virtual:3");
  CHECK(share_host(parse_device_list("host:cores=2"), {0, 1, 2}).host_cpus ==
        std::vector<int>{0, 1});
  const auto both = share_host(parse_device_list("virtual:cores=2,host:cores=1"), {0, 1, 2, 3});
  CHECK(both.devices[0].cores == std::vector<int>{2, 3});
  CHECK(both.host_cpus == std::vector<int>{0});
  CHECK(both.warning.empty());
  const auto crowded = share_host(parse_device_list("virtual:cores=2,host:cores=2"), {0, 1, 2});
  CHECK(crowded.devices[0].cores == std::vector<int>{1, 2});
  CHECK(crowded.host_cpus == std::vector<int>{0, 1});
  CHECK(crowded.warning.starts_with("the devices: 4 cores asked for, of 3"));
  const auto turns = share_host(parse_device_list("3xvirtual:cores=2"), {0, 1, 2, 3, 4});
  CHECK(turns.devices[0].cores == std::vector<int>{3, 4});
  CHECK(turns.devices[1].cores == std::vector<int>{1, 2});
  CHECK(turns.devices[2].cores == std::vector<int>{3, 4});
}
