#include "options/config_file.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/utf8.h"
#include "checkpoint/model_files.h"

namespace hearth {
namespace {

constexpr uint64_t kMaxYamlBytes = uint64_t{128} << 10;  // yaml-cpp takes 200 times that

constexpr size_t kMaxLevels = 16;
constexpr int kKeptMaps = 2;  // a map of a key, and maps in it

// What a file may come to with its aliases written out: the bytes of its texts, and some for each.
constexpr size_t kNodeCost = 16;
constexpr size_t kExpandedFactor = 16;  // times the file
constexpr size_t kExpandedSlack = size_t{64} << 10;

struct Node;
using NodePointer = std::shared_ptr<const Node>;

// A value of the file. Aliases share it.
struct Node {
  enum class Kind : uint8_t { null, scalar, list, map };
  Kind kind = Kind::null;
  bool plain = false;  // a text without quotes
  int line = 0;
  std::string text;
  std::vector<NodePointer> items = {};  // of a map: key and value in turn
  size_t cost = kNodeCost;              // with aliases written out
  size_t levels = 0;                    // of lists and maps, this one included
};

// Builds the tree from the parser's events: what a tree of yaml-cpp takes has no bound.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string source, size_t bytes)
      : source_(std::move(source)), most_(kExpandedFactor * bytes + kExpandedSlack) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) refuse(mark, "expected one document, found a second");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(mark, make(mark, Node::Kind::null, anchor));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    refuse_tag(mark, tag);
    refuse_escapes(mark, text);
    const auto node = make(mark, Node::Kind::scalar, anchor);
    node->text = text;
    node->plain = tag == "?";
    node->cost += text.size();
    add(mark, node);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_tag(mark, tag);
    open(mark, make(mark, Node::Kind::list, anchor));
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_tag(mark, tag);
    open(mark, make(mark, Node::Kind::map, anchor));
  }
  void OnMapEnd() override { close(); }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto& node = anchors_.at(anchor);
    const bool is_open = std::any_of(open_.begin(), open_.end(),
                                     [&](const Open& open) { return open.node == node; });
    if (is_open) refuse(mark, "an alias (*name) inside the value that it stands for");
    if (open_.size() + node->levels > kMaxLevels) refuse_levels(mark);
    add(mark, node);
  }

  /// The map of the file; null for an empty document.
  NodePointer root() const { return root_; }

  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& what) const {
    refuse_line(mark.line + 1, what);
  }
  [[noreturn]] void refuse_line(int line, const std::string& what) const {
    throw input_error(source_ + ":" + std::to_string(line) + ": " + what);
  }

 private:
  /// A map or list that is not closed yet.
  struct Open {
    std::shared_ptr<Node> node;
    std::set<std::string> keys = {};  // of a map
    bool expects_key() const {
      return node->kind == Node::Kind::map && node->items.size() % 2 == 0;
    }
  };

  std::shared_ptr<Node> make(const YAML::Mark& mark, Node::Kind kind, YAML::anchor_t anchor) {
    auto node = std::make_shared<Node>();
    node->kind = kind;
    node->line = mark.line + 1;
    if (anchor != 0) anchors_[anchor] = node;
    return node;
  }

  void add(const YAML::Mark& mark, const std::shared_ptr<Node>& node) {
    if (open_.empty()) {
      if (node->kind == Node::Kind::null) return;  // an empty document
      refuse(mark, "expected 'name: value' lines, found " + quoted(node->text));
    }
    Open& in = open_.back();
    if (in.expects_key()) check_key(mark, *node);
    in.node->items.push_back(node);
    in.node->cost += node->cost;
    in.node->levels = std::max(in.node->levels, 1 + node->levels);
    expanded_ += node->cost;
    if (expanded_ > most_) {
      refuse(mark, "with its aliases (*name) written out the file has more than " +
                       std::to_string(most_) + " bytes");
    }
  }

  void check_key(const YAML::Mark& mark, const Node& key) {
    if (key.kind == Node::Kind::null) refuse(mark, "expected the name of an option, found null");
    if (key.kind == Node::Kind::list) refuse(mark, "a list can only be the value of an option");
    if (key.kind == Node::Kind::map) refuse(mark, "expected the name of an option, found a map");
    if (!open_.back().keys.insert(key.text).second) {
      refuse(mark, quoted(key.text) + " stands there twice");
    }
  }

  void open(const YAML::Mark& mark, const std::shared_ptr<Node>& node) {
    if (open_.empty() ? node->kind == Node::Kind::list : open_.back().expects_key()) {
      refuse(mark, node->kind == Node::Kind::list ? "a list can only be the value of an option"
                                                  : "expected the name of an option, found a map");
    }
    if (open_.size() == kMaxLevels) refuse_levels(mark);
    node->levels = 1;
    open_.push_back({node});
  }

  // What is closed has been counted item by item.
  void close() {
    const std::shared_ptr<Node> node = open_.back().node;
    open_.pop_back();
    if (open_.empty()) {
      root_ = node;
      return;
    }
    Node& in = *open_.back().node;
    in.items.push_back(node);
    in.cost += node->cost;
    in.levels = std::max(in.levels, 1 + node->levels);
  }

  [[noreturn]] void refuse_levels(const YAML::Mark& mark) const {
    refuse(mark, "more than " + std::to_string(kMaxLevels) + " levels of lists and maps");
  }

  // yaml-cpp gives "?" to plain and "!" to quoted texts without one.
  void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!") {
      refuse(mark, "tags (!name) are not read, found " + quoted(tag));
    }
  }

  // The file has neither, so an escape gave it: yaml-cpp reads \N and \_ as one byte each, which is
  // not UTF-8, and a path would end at a zero byte.
  void refuse_escapes(const YAML::Mark& mark, const std::string& text) const {
    if (find_invalid_utf8(text) != std::string::npos) {
      refuse(mark, "the escapes \\N and \\_ are not read: write the character itself");
    }
    if (text.find('\0') != std::string::npos) refuse(mark, "a text with a zero byte (\\0)");
  }

  std::string source_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, std::shared_ptr<Node>> anchors_;
  NodePointer root_;
  size_t most_;
  size_t expanded_ = 0;
  int documents_ = 0;
};

// The entries of a map. Aliases are written out: TreeBuilder has bounded what that takes.
class EntryReader {
 public:
  explicit EntryReader(const TreeBuilder& tree) : tree_(tree) {}

  /// `maps`: how many maps below a key of the file it lies in.
  std::vector<ConfigEntry> entries_of(const Node& map, int maps) const {
    std::vector<ConfigEntry> entries;
    std::set<std::string> keys;
    std::vector<const Node*> merged;
    for (size_t i = 0; i < map.items.size(); i += 2) {
      const Node& key = *map.items[i];
      const Node& value = *map.items[i + 1];
      if (key.plain && key.text == "<<") {
        add_merged(value, merged);
        continue;
      }
      keys.insert(key.text);
      entries.push_back({key.text, {}, false, key.line});
      fill(entries.back(), value, maps);
    }
    // What stands in the map itself wins, then the first of the merged maps.
    for (const Node* source : merged) {
      for (ConfigEntry& entry : entries_of(*source, maps)) {
        if (keys.insert(entry.key).second) entries.push_back(std::move(entry));
      }
    }
    return entries;
  }

 private:
  // `<<: *map` or `<<: [*map, *map]`
  void add_merged(const Node& value, std::vector<const Node*>& merged) const {
    const auto add = [&](const Node& map) {
      if (map.kind != Node::Kind::map) {
        tree_.refuse_line(value.line, "'<<' takes a map or a list of maps");
      }
      merged.push_back(&map);
    };
    if (value.kind != Node::Kind::list) return add(value);
    for (const NodePointer& map : value.items) add(*map);
  }

  void fill(ConfigEntry& entry, const Node& value, int maps) const {
    entry.is_null = value.kind == Node::Kind::null;
    entry.is_list = value.kind == Node::Kind::list;
    if (!entry.is_list) return add(entry, value, maps);
    for (const NodePointer& item : value.items) {
      if (item->kind == Node::Kind::null) entry.has_null = true;
      add(entry, *item, maps);
    }
  }

  void add(ConfigEntry& entry, const Node& value, int maps) const {
    if (value.kind == Node::Kind::scalar) {
      entry.values.push_back(value.text);
    } else if (value.kind == Node::Kind::map && maps < kKeptMaps) {
      entry.maps.push_back(entries_of(value, maps + 1));
    } else if (value.kind != Node::Kind::null) {
      entry.nested = true;
    }
  }

  const TreeBuilder& tree_;
};

}  // namespace

std::vector<ConfigEntry> parse_config_yaml(std::string_view text, const std::string& source) {
  const size_t invalid = find_invalid_utf8(text);
  if (invalid != std::string_view::npos || text.find('\0') != std::string_view::npos) {
    throw input_error(source + ": expected UTF-8 text without zero bytes");
  }
  TreeBuilder tree(source, text.size());
  // The end marker: without it yaml-cpp takes a quote that is never closed for a value that holds
  // the rest of the file.
  std::istringstream stream{std::string(text) + "\n...\n"};
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(tree)) {
    }
  } catch (const YAML::Exception& e) {
    // What is missing at the end is told of the last line.
    const auto lines = std::count(text.begin(), text.end(), '\n') + (text.ends_with('\n') ? 0 : 1);
    const auto line = std::min<int64_t>(e.mark.line + 1, std::max<int64_t>(lines, 1));
    throw input_error(source + ":" + std::to_string(line) + ": bad YAML: " + e.msg);
  }
  if (!tree.root()) return {};
  return EntryReader(tree).entries_of(*tree.root(), 0);
}

std::vector<ConfigEntry> read_config_file(const std::string& path) {
  return parse_config_yaml(read_text_file(path, kMaxYamlBytes), path);
}

}  // namespace hearth
