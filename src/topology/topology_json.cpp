#include "topology/topology_json.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/error.h"
#include "topology/hwloc_pci.h"

namespace hearth {
namespace {

constexpr size_t kMostPackages = 1024, kMostRoots = 4096, kMostDevices = 4096;
constexpr int64_t kMostNumber = 65535;  // of packages, nodes and CPUs
constexpr double kMostRate = 1e15;      // bytes per second

/// A value of the description, with its place in it for messages: "m.json: topology: nodes[0]".
struct Field {
  const Json& value;
  std::string where;

  [[noreturn]] void refuse(const std::string& what) const {
    throw input_error(where + ": " + what);
  }
  /// A member that must be there.
  Field at(const char* key) const {
    if (!value.is_object()) refuse("expected an object");
    const Json* found = value.find(key);
    if (found == nullptr) refuse(std::string(key) + " is missing");
    return {*found, where + ": " + key};
  }
  /// Whether a member is there.
  bool has(const char* key) const { return value.find(key) != nullptr; }
  bool is_null() const { return value.is_null(); }

  std::vector<Field> list(size_t most) const {
    if (!value.is_array()) refuse("expected a list");
    const JsonArray& items = value.as_array();
    if (items.size() > most) refuse("more than " + std::to_string(most) + " items");
    std::vector<Field> fields;
    for (size_t i = 0; i < items.size(); ++i) {
      fields.push_back({items[i], where + "[" + std::to_string(i) + "]"});
    }
    return fields;
  }
  int64_t whole(int64_t least, int64_t most) const {
    if (!value.is_signed() || value.as_int() < least || value.as_int() > most) {
      refuse("expected a whole number, " + std::to_string(least) + " to " + std::to_string(most) +
             ", found " + quoted(shown()));
    }
    return value.as_int();
  }
  int number() const { return static_cast<int>(whole(0, kMostNumber)); }
  /// Null is 0.
  double rate() const {
    if (is_null()) return 0;
    if (!value.is_number() || value.as_double() < 0 || value.as_double() > kMostRate) {
      refuse("expected null or bytes per second below 1e15, found " + quoted(shown()));
    }
    return value.as_double();
  }
  /// Null is empty.
  std::string text() const {
    if (is_null()) return {};
    if (!value.is_string()) refuse("expected a text, found " + quoted(shown()));
    return value.as_string();
  }

 private:
  std::string shown() const {
    if (value.is_array()) return "a list";
    if (value.is_object()) return "an object";
    return value.dump();
  }
};

class Reader {
 public:
  explicit Reader(const Field& topology) : topology_(topology) {}

  Topology read() {
    read_packages();
    read_nodes();
    read_cores();
    read_roots();
    result_.accelerators = devices("devices");
    result_.nics = devices("nics");
    read_distances();
    result_.has_real_nodes = false;
    return std::move(result_);
  }

 private:
  void read_packages() {
    const Field list = topology_.at("packages");
    std::set<int> known;
    for (const Field& package : list.list(kMostPackages)) {
      TopologyPackage read{package.at("index").number(), package.at("model").text()};
      if (!known.insert(read.index).second) package.refuse("the index of another package");
      if (result_.cpu_model.empty()) result_.cpu_model = read.model;
      result_.packages.push_back(std::move(read));
    }
    if (result_.packages.empty()) list.refuse("a machine has at least one");
  }

  /// Null, or a package that is there.
  std::optional<int> package(const Field& field) const {
    if (field.is_null()) return std::nullopt;
    const int index = field.number();
    const bool there = std::any_of(result_.packages.begin(), result_.packages.end(),
                                   [&](const TopologyPackage& p) { return p.index == index; });
    if (!there) field.refuse("no such package");
    return index;
  }

  void read_nodes() {
    const Field list = topology_.at("nodes");
    for (const Field& node : list.list(kMostDescribedNodes)) {
      NumaNode read{node.at("number").number(), 0, package(node.at("package"))};
      read.memory = static_cast<uint64_t>(
          node.at("memory_bytes").whole(0, static_cast<int64_t>(kMostMemory)));
      if (!node_numbers_.insert(read.number).second) node.refuse("the number of another node");
      result_.total_memory += read.memory;
      result_.nodes.push_back(read);
    }
    if (result_.nodes.empty()) list.refuse("a machine has at least one");
    std::sort(result_.nodes.begin(), result_.nodes.end(),
              [](const NumaNode& a, const NumaNode& b) { return a.number < b.number; });
  }

  int node(const Field& field) const {
    const int number = field.number();
    if (!node_numbers_.contains(number)) field.refuse("no such node");
    return number;
  }
  std::vector<int> nodes(const Field& field) const {
    std::vector<int> numbers;
    for (const Field& item : field.list(kMostDescribedNodes)) numbers.push_back(node(item));
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    return numbers;
  }

  void read_cores() {
    const int64_t cores = topology_.at("cores").whole(1, kMostDescribedCores);
    const int64_t cpus = topology_.at("cpus").whole(cores, kMostDescribedCpus);
    if (topology_.has("core_list")) {
      list_cores();
    } else {
      count_cores(cores, cpus);
    }
    if (std::ssize(result_.cores) != cores) topology_.at("cores").refuse("core_list has others");
    if (result_.cpus() != cpus) topology_.at("cpus").refuse("core_list has others");
  }

  void list_cores() {
    std::set<int> known;
    for (const Field& core : topology_.at("core_list").list(kMostDescribedCores)) {
      TopologyCore read;
      read.package = package(core.at("package")).value_or(result_.packages.front().index);
      read.node = core.at("node").is_null() ? -1 : node(core.at("node"));
      for (const Field& cpu : core.at("cpus").list(kMostDescribedCpus)) {
        read.cpus.push_back(cpu.number());
        if (!known.insert(read.cpus.back()).second) cpu.refuse("the CPU of another core");
      }
      if (read.cpus.empty()) core.refuse("a core has at least one CPU");
      std::sort(read.cpus.begin(), read.cpus.end());
      result_.cores.push_back(std::move(read));
    }
  }

  /// The first CPU of each core, node by node, then the second of each, and so on.
  void count_cores(int64_t cores, int64_t cpus) {
    for (const Field& node : topology_.at("nodes").list(kMostDescribedNodes)) {
      const NumaNode& of = *result_.find_node(node.at("number").number());
      const int64_t of_node = node.at("cores").whole(0, kMostDescribedCores);
      if (std::ssize(result_.cores) + of_node > cores) {
        node.at("cores").refuse("the nodes have more cores than the machine");
      }
      const int package = of.package.value_or(result_.packages.front().index);
      result_.cores.insert(result_.cores.end(), static_cast<size_t>(of_node),
                           {package, of.number, {}});
    }
    result_.cores.resize(static_cast<size_t>(cores), {result_.packages.front().index, -1, {}});
    for (int64_t cpu = 0; cpu < cpus; ++cpu) {
      result_.cores[static_cast<size_t>(cpu % cores)].cpus.push_back(static_cast<int>(cpu));
    }
  }

  void read_roots() {
    for (const Field& root : topology_.at("root_complexes").list(kMostRoots)) {
      TopologyRoot read{root.at("name").text(), package(root.at("package")),
                        nodes(root.at("nodes"))};
      if (read.name.empty()) root.refuse("a root complex has a name");
      if (result_.find_root(read.name) != nullptr) root.refuse("the name of another root complex");
      result_.roots.push_back(std::move(read));
    }
    std::sort(result_.roots.begin(), result_.roots.end(),
              [](const TopologyRoot& a, const TopologyRoot& b) { return a.name < b.name; });
  }

  std::vector<PciDevice> devices(const char* key) const {
    std::vector<PciDevice> found;
    std::set<std::string> known;
    for (const Field& device : topology_.at(key).list(kMostDevices)) {
      PciDevice read;
      const auto address = normal_pci_address(device.at("pci").text());
      if (!address) device.at("pci").refuse("expected a PCI address");
      if (!known.insert(*address).second) device.refuse("the address of another device");
      read.address = *address;
      read.class_code = device.at("class").text();
      read.vendor = device.at("vendor").text();
      read.root = device.at("root").text();
      if (!read.root.empty() && result_.find_root(read.root) == nullptr) {
        device.at("root").refuse("no such root complex");
      }
      read.package = package(device.at("package"));
      read.nodes = nodes(device.at("nodes"));
      read.link_bytes_per_s = device.at("link_bytes_per_s").rate();
      if (device.has("memory_bytes")) {
        read.memory = static_cast<uint64_t>(
            device.at("memory_bytes").whole(1, static_cast<int64_t>(kMostMemory)));
      }
      for (const Field& name : device.at("names").list(kMostDevices)) {
        read.names.push_back(name.text());
      }
      found.push_back(std::move(read));
    }
    std::sort(found.begin(), found.end(),
              [](const PciDevice& a, const PciDevice& b) { return a.address < b.address; });
    return found;
  }

  void read_distances() {
    if (!topology_.has("distances")) return;
    for (const Field& row : topology_.at("distances").list(kMostDescribedNodes)) {
      std::vector<double>& read = result_.distances.emplace_back();
      for (const Field& distance : row.list(kMostDescribedNodes)) read.push_back(distance.rate());
      if (read.size() != result_.nodes.size()) row.refuse("expected a number for each node");
    }
    if (result_.distances.size() != result_.nodes.size()) {
      topology_.at("distances").refuse("expected a list for each node");
    }
  }

  const Field& topology_;
  std::set<int> node_numbers_;
  Topology result_;
};

}  // namespace

Json core_list_json(const Topology& topology) {
  JsonArray cores;
  for (const TopologyCore& core : topology.cores) {
    JsonArray cpus;
    for (const int cpu : core.cpus) cpus.emplace_back(int64_t{cpu});
    cores.emplace_back(JsonObject{{"package", core.package},
                                  {"node", core.node < 0 ? Json(nullptr) : Json(core.node)},
                                  {"cpus", std::move(cpus)}});
  }
  return cores;
}

Topology topology_of(const Json& json, const std::string& where) {
  const Field field{json, where};
  return Reader(field).read();
}

}  // namespace hearth
