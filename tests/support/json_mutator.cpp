#include "support/json_mutator.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

namespace hearth::test {
namespace {

using Node = nlohmann::ordered_json;

// Stands for a key that comes twice, which a tree cannot hold, until the text is written.
constexpr std::string_view kTwin = "\x01twin:";

class Mutator {
 public:
  Mutator(Node& root, uint32_t seed) : root_(root), random_(seed) {}

  void change() {
    std::vector<Node*> nodes;
    collect(root_, nodes);
    Node& node = *nodes[below(nodes.size())];
    if (node.is_object() && !node.empty() && below(4) != 0) {
      change_members(node, nodes);
    } else if (node.is_array() && !node.empty() && below(4) != 0) {
      change_elements(node, nodes);
    } else {
      node = below(3) == 0 ? Node(*nodes[below(nodes.size())]) : changed_scalar(node);
    }
  }

  uint64_t below(uint64_t n) { return n == 0 ? 0 : random_() % n; }

 private:
  // Texts of limits: a tree has as many nodes as its text bytes at most, so this stays small.
  static void collect(Node& node, std::vector<Node*>& nodes) {
    nodes.push_back(&node);
    if (node.is_structured()) {
      for (Node& child : node) collect(child, nodes);
    }
  }

  void change_members(Node& object, const std::vector<Node*>& nodes) {
    auto& members = object.get_ref<Node::object_t&>();
    auto& one = *std::next(members.begin(), static_cast<ptrdiff_t>(below(members.size())));
    auto& other = *std::next(members.begin(), static_cast<ptrdiff_t>(below(members.size())));
    const Node copy = *nodes[below(nodes.size())];  // before nodes move
    switch (below(6)) {
      case 0: object.erase(std::string(one.first)); break;
      case 1: std::swap(one.second, other.second); break;
      case 2: one.second = copy; break;
      case 3: object[changed_text(one.first)] = copy; break;
      case 4: object[std::string(kTwin) + one.first] = Node(other.second); break;
      default: one.second = changed_scalar(one.second);
    }
  }

  void change_elements(Node& array, const std::vector<Node*>& nodes) {
    const size_t i = below(array.size()), j = below(array.size());
    const Node copy = *nodes[below(nodes.size())];
    switch (below(5)) {
      case 0: array.erase(i); break;
      case 1: std::swap(array[i], array[j]); break;
      case 2: array.push_back(Node(array[i])); break;
      case 3: array[i] = copy; break;
      default: array[i] = changed_scalar(array[i]);
    }
  }

  std::string changed_text(std::string text) {
    switch (below(4)) {
      case 0: return text + text;
      case 1: return text.substr(0, below(text.size() + 1));
      case 2: return text.insert(below(text.size() + 1), 1, static_cast<char>(below(128)));
      default:
        if (!text.empty()) text[below(text.size())] = static_cast<char>(below(128));
        return text;
    }
  }

  Node changed_scalar(const Node& node) {
    if (node.is_string() && below(3) != 0) return changed_text(node.get<std::string>());
    if (node.is_number_integer() && below(3) != 0) {
      const auto value = node.get<uint64_t>();
      const uint64_t steps[] = {value + 1, value - 1, value * 2, value / 2, 0 - value};
      return static_cast<int64_t>(steps[below(5)]);
    }
    static const std::vector<Node> kOthers = {nullptr,
                                              true,
                                              false,
                                              0,
                                              1,
                                              -1,
                                              2,
                                              64,
                                              65,
                                              255,
                                              65536,
                                              2147483647,
                                              2147483648,
                                              9007199254740993,
                                              INT64_MAX,
                                              UINT64_MAX,
                                              INT64_MIN,
                                              0.5,
                                              -0.0,
                                              1e-300,
                                              1e308,
                                              "",
                                              "0",
                                              "\xc3\xa9",
                                              "../x",
                                              Node::array(),
                                              Node::object(),
                                              Node::array({0, 1}),
                                              Node::array({Node::array({Node::object()})})};
    return kOthers[below(kOthers.size())];
  }

  Node& root_;
  std::mt19937 random_;
};

}  // namespace

std::string mutate_json(std::string_view text, uint32_t seed) {
  Node root = Node::parse(text, nullptr, false);
  if (root.is_discarded()) return std::string(text);
  Mutator mutator(root, seed);
  for (uint64_t changes = 1 + mutator.below(3); changes > 0; --changes) mutator.change();
  const std::string written = root.dump(-1, ' ', false, Node::error_handler_t::replace);
  const std::string twin = "\"\\u0001twin:";
  std::string result;
  for (size_t at = 0; at < written.size();) {
    const size_t found = std::min(written.find(twin, at), written.size());
    result.append(written, at, found - at);
    if (found < written.size()) result.push_back('"');
    at = found + (found < written.size() ? twin.size() : 0);
  }
  return result;
}

}  // namespace hearth::test
