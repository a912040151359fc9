#include <catch2/catch_test_macros.hpp>

#include "base/arena.h"
#include "topology/memory_binding.h"
#include "topology/topology.h"

using namespace hearth;

TEST_CASE("a device that is not there is near no node") {
  CHECK(numa_node_of_pci("ffff:ff:1f.0") == -1);
  CHECK(numa_node_of_pci("no bus id") == -1);
  CHECK(numa_node_of_pci("") == -1);
}

TEST_CASE("memory of a wished node is memory") {
  const Arena arena("bound", size_t{4} << 20);
  bind_memory(arena.data(), arena.size(),
              detect_topology().nodes.front().number);  // may be refused
  for (size_t i = 0; i < arena.size(); i += 4096) arena.data()[i] = std::byte{1};
  CHECK(arena.data()[4096] == std::byte{1});
  CHECK_FALSE(bind_memory(arena.data(), arena.size(), 1 << 20));
}
