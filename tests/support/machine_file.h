// Writes machines as hwloc's XML, for tests.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace hearth::test {

struct FileDevice {
  std::string address;  // "0000:17:00.0"
  std::string class_code = "0302";
  std::string link_speed = "31.507692";      // GB/s; empty: not said
  std::vector<std::string> os_devices = {};  // whole elements
};

struct FileBridge {
  int package = 0;    // that it hangs below; -1: below the machine
  std::string buses;  // "0000:[16-1b]"
  std::vector<FileDevice> devices = {};
};

struct FileMachine {
  bool version_1 = false;
  int packages = 2, cores = 2, threads = 2;  // cores of a package, threads of a core
  bool nodes = true;                         // node p in package p
  bool fast_nodes = false;        // also node packages + p in package p, beside the first
  bool far_node = false;          // also a node of the machine, with the highest number
  std::set<int> no_memory = {};   // packages whose node has none
  std::set<int> no_node = {};     // packages without a node
  std::set<int> offline = {};     // CPUs
  std::set<int> disallowed = {};  // CPUs
  std::set<int> disallowed_nodes = {};
  std::vector<FileBridge> bridges = {};
  std::string after = {};  // elements after the machine
};

inline constexpr uint64_t kNodeBytes = uint64_t{64} << 30, kFastBytes = uint64_t{16} << 30,
                          kFarBytes = uint64_t{256} << 30;

std::string machine_file(const FileMachine& machine);

/// An OS device in both versions.
std::string os_device(bool version_1, const std::string& name, int type,
                      const std::string& interface = "");

}  // namespace hearth::test
