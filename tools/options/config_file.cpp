#include "options/config_file.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cstdint>
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

// Builds the entries from the parser's events, which needs no tree and no memory beyond the text.
class EntryBuilder : public YAML::EventHandler {
 public:
  EntryBuilder(std::string source, std::vector<ConfigEntry>& entries)
      : source_(std::move(source)), entries_(entries) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) refuse(mark, "expected one document, found a second");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    if (levels_.empty()) return;  // an empty document
    Level& level = levels_.back();
    if (level.list) refuse(mark, "expected values in a list, found null");
    if (level.expects_key) refuse(mark, "expected the name of an option, found null");
    if (level.entries) level.entries->back().is_null = true;
    level.expects_key = true;
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (levels_.empty()) refuse(mark, "expected 'name: value' lines, found " + quoted(text));
    Level& level = levels_.back();
    if (level.list) {
      if (level.entry) level.entry->values.push_back(text);
      return;
    }
    if (level.expects_key) {
      if (!level.keys.insert(text).second) refuse(mark, quoted(text) + " stands there twice");
      if (level.entries) level.entries->push_back({text, {}, false, mark.line + 1});
    } else if (level.entries) {
      level.entries->back().values.push_back(text);
    }
    level.expects_key = !level.expects_key;
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (levels_.empty() || (!levels_.back().list && levels_.back().expects_key)) {
      refuse(mark, "a list can only be the value of an option");
    }
    ConfigEntry* entry = entry_of_value();
    const bool in_list = levels_.back().list;
    if (in_list && entry) entry->nested = true;
    descend(mark, {.list = true, .entry = in_list ? nullptr : entry});
  }
  void OnSequenceEnd() override { ascend(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (levels_.empty()) return descend(mark, {.entries = &entries_});
    if (!levels_.back().list && levels_.back().expects_key) {
      refuse(mark, "expected the name of an option, found a map");
    }
    ConfigEntry* entry = entry_of_value();
    if (entry && maps_ < kKeptMaps) {
      entry->maps.emplace_back();
      ++maps_;
      return descend(mark, {.entries = &entry->maps.back(), .kept_map = true});
    }
    if (entry) entry->nested = true;
    descend(mark, {});
  }
  void OnMapEnd() override { ascend(); }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "aliases (*name) are not read: write the value out");
  }

  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& what) const {
    throw input_error(source_ + ":" + std::to_string(mark.line + 1) + ": " + what);
  }

 private:
  /// A map or list that is open.
  struct Level {
    bool list = false;
    ConfigEntry* entry = nullptr;                 // of a list: where its texts go; null: nowhere
    std::vector<ConfigEntry>* entries = nullptr;  // of a map: where its keys go; null: nowhere
    bool kept_map = false;                        // below a key of the file
    bool expects_key = true;                      // of a map
    std::set<std::string> keys = {};              // of a map
  };

  /// Whose value starts now; null where nothing is kept.
  ConfigEntry* entry_of_value() const {
    const Level& level = levels_.back();
    if (level.list) return level.entry;
    return level.entries ? &level.entries->back() : nullptr;
  }

  void descend(const YAML::Mark& mark, Level level) {
    if (levels_.size() == kMaxLevels) {
      refuse(mark, "more than " + std::to_string(kMaxLevels) + " levels of lists and maps");
    }
    levels_.push_back(std::move(level));
  }

  void ascend() {
    maps_ -= levels_.back().kept_map ? 1 : 0;
    levels_.pop_back();
    if (!levels_.empty() && !levels_.back().list) levels_.back().expects_key = true;
  }

  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
    if (anchor != 0) refuse(mark, "anchors (&name) are not read: write the value out");
  }

  // yaml-cpp gives "?" to plain and "!" to quoted texts without one.
  void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!") {
      refuse(mark, "tags (!name) are not read, found " + quoted(tag));
    }
  }

  std::string source_;
  std::vector<ConfigEntry>& entries_;
  std::vector<Level> levels_;
  int maps_ = 0;  // open ones below a key of the file that are kept
  int documents_ = 0;
};

}  // namespace

std::vector<ConfigEntry> parse_config_yaml(std::string_view text, const std::string& source) {
  const size_t invalid = find_invalid_utf8(text);
  if (invalid != std::string_view::npos || text.find('\0') != std::string_view::npos) {
    throw input_error(source + ": expected UTF-8 text without zero bytes");
  }
  std::vector<ConfigEntry> entries;
  EntryBuilder builder(source, entries);
  // The end marker: without it yaml-cpp takes a quote that is never closed for a value that holds
  // the rest of the file.
  std::istringstream stream{std::string(text) + "\n...\n"};
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& e) {
    // What is missing at the end is told of the last line.
    const auto lines = std::count(text.begin(), text.end(), '\n') + (text.ends_with('\n') ? 0 : 1);
    const auto line = std::min<int64_t>(e.mark.line + 1, std::max<int64_t>(lines, 1));
    throw input_error(source + ":" + std::to_string(line) + ": bad YAML: " + e.msg);
  }
  return entries;
}

std::vector<ConfigEntry> read_config_file(const std::string& path) {
  return parse_config_yaml(read_text_file(path, kMaxYamlBytes), path);
}

}  // namespace hearth
