#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <random>

#include "plan/stage_mapping.h"

using namespace hearth;

namespace {

std::vector<StageDevice> below(const std::vector<std::string>& roots) {
  std::vector<StageDevice> devices;
  for (const std::string& root : roots) devices.push_back({.root = root});
  return devices;
}

// Counted stage by stage, unlike the library's.
int counted(const std::vector<StageDevice>& devices, const std::vector<int>& order, int stages) {
  int shared = 0;
  for (int s = 0; s + 1 < stages && order.size() > 1; ++s) {
    const auto on = [&](int stage) {
      return devices[static_cast<size_t>(order[static_cast<size_t>(stage) % order.size()])].root;
    };
    shared += !on(s).empty() && on(s) == on(s + 1);
  }
  return shared;
}

// The first of the orders with the fewest shared pairs, in the order of the alphabet.
std::vector<int> best_by_trying(const std::vector<StageDevice>& devices, int stages) {
  std::vector<int> order(devices.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<int> best = order;
  int least = counted(devices, order, stages);
  while (least > 0 && std::next_permutation(order.begin(), order.end())) {
    if (const int now = counted(devices, order, stages); now < least) {
      least = now;
      best = order;
    }
  }
  return best;
}

bool is_permutation_of_all(std::vector<int> order) {
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<int>(i)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("stages alternate between root complexes") {
  const StageMapping m = map_stages(below({"a", "a", "b", "b"}), 4);
  CHECK(m.order == std::vector<int>{0, 2, 1, 3});
  CHECK(m.shared == 0);
  CHECK(m.reason ==
        "no neighbouring stages share a root complex; in the order of the list 2 pairs would");
  CHECK(m.device_of(0) == 0);
  CHECK(m.device_of(5) == 2);
  CHECK(map_stages(below({"a", "a", "b"}), 3).order == std::vector<int>{0, 2, 1});
}

TEST_CASE("what cannot be avoided is said") {
  const StageMapping m = map_stages(below({"a", "a", "a", "b"}), 4);
  CHECK(m.shared == 1);
  CHECK(m.order == std::vector<int>{0, 1, 3, 2});
  CHECK(m.reason ==
        "of neighbouring stages 1 pair out of 3 shares a root complex; no order of the devices has "
        "fewer; in the order of the list 2 pairs would");
  CHECK(map_stages(below({"a", "a"}), 2).reason ==
        "of neighbouring stages 1 pair out of 1 shares a root complex; no order of the devices has "
        "fewer; devices are in the order of the list");
  CHECK(map_stages(below({"a"}), 3).reason == "one device holds every stage");
  CHECK(map_stages(below({"a"}), 3).shared == 0);
  CHECK(map_stages(below({"a", "b"}), 1).reason == "there is one stage");
  CHECK(map_stages(below({"", ""}), 2).reason ==
        "no device names its root complex; devices are in the order of the list");
}

TEST_CASE("with fewer stages than devices the mapping chooses among the devices") {
  const StageMapping m = map_stages(below({"a", "a", "b"}), 2);
  CHECK(m.order == std::vector<int>{0, 2, 1});
  CHECK(m.shared == 0);
}

TEST_CASE("of pairs that must share, the mapping takes those that lose least") {
  // The order wraps: of three neighbouring pairs one shares, whatever the order.
  std::vector<StageDevice> devices = {
      {"slow", 25e9, 25e9}, {"slow", 25e9, 25e9}, {"fast", 25e9, 50e9}};
  CHECK(map_stages(devices, 4).order == std::vector<int>{0, 1, 2});
  // One device has a narrow link, so it loses nothing beside a neighbour below its root complex.
  devices = {{"r", 50e9, 50e9}, {"r", 50e9, 50e9}, {"r", 10e9, 50e9}, {"s", 50e9, 50e9}};
  StageMapping m = map_stages(devices, 4);
  CHECK(m.shared == 1);
  CHECK(m.order == std::vector<int>{0, 2, 3, 1});
  // Where nothing is lost, the earliest devices come first.
  devices = {{"slow", 25e9, 25e9},
             {"slow", 25e9, 25e9},
             {"fast", 25e9, 50e9},
             {"fast", 25e9, 50e9},
             {"fast", 25e9, 50e9}};
  m = map_stages(devices, 6);
  CHECK(m.shared == 1);
  CHECK(m.order == std::vector<int>{0, 2, 1, 3, 4});
}

TEST_CASE("no order of up to eight devices is better") {
  for (size_t size = 1; size <= 6; ++size) {
    // Every way to put devices below root complexes, as growing words: aab, aba, abb, abc, ...
    std::vector<int> word(size, 0);
    while (true) {
      std::vector<StageDevice> devices;
      for (const int letter : word)
        devices.push_back({std::string(1, static_cast<char>('a' + letter))});
      for (int stages = 1; stages <= 2 * static_cast<int>(size) + 1; ++stages) {
        const StageMapping m = map_stages(devices, stages);
        REQUIRE(is_permutation_of_all(m.order));
        REQUIRE(m.shared == counted(devices, m.order, stages));
        REQUIRE(m.order == best_by_trying(devices, stages));
      }
      size_t at = size;
      while (at-- > 1) {
        const int most = *std::max_element(word.begin(), word.begin() + static_cast<long>(at)) + 1;
        if (word[at] < most) break;
        word[at] = 0;
      }
      if (at == 0 || at >= size) break;
      ++word[at];
    }
  }
  std::mt19937 random(7);
  for (int trial = 0; trial < 40; ++trial) {
    std::vector<StageDevice> devices(7 + trial % 2);
    for (StageDevice& d : devices) d.root = std::string(random() % 3, 'r');  // "" shares with none
    const int stages = 2 + static_cast<int>(random() % 20);
    const StageMapping m = map_stages(devices, stages);
    CHECK(m.shared == counted(devices, m.order, stages));
    CHECK(m.order == best_by_trying(devices, stages));
  }
}

TEST_CASE("many devices are mapped in time") {
  std::vector<StageDevice> devices;
  for (int i = 0; i < 16; ++i) devices.push_back({std::to_string(i / 2)});
  CHECK(map_stages(devices, 64).shared == 0);
  for (int i = 16; i < 100; ++i) devices.push_back({std::to_string(i / 2)});
  const StageMapping m = map_stages(devices, 100);
  CHECK(is_permutation_of_all(m.order));
  CHECK(m.shared == 0);
}
