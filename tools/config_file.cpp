#include "tools/config_file.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <set>
#include <sstream>

#include "base/error.h"
#include "base/utf8.h"
#include "model/model_files.h"

namespace hearth {
namespace {

constexpr uint64_t kMaxYamlBytes = uint64_t{128} << 10;  // yaml-cpp takes 200 times that

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
    switch (where_) {
      case Where::start: return;  // an empty document
      case Where::key: refuse(mark, "expected the name of an option, found null");
      case Where::value:
        entries_.back().is_null = true;
        where_ = Where::key;
        return;
      case Where::list: refuse(mark, "expected values in a list, found null");
    }
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    switch (where_) {
      case Where::start: refuse(mark, "expected 'name: value' lines, found " + quoted(text));
      case Where::key:
        if (!keys_.insert(text).second) refuse(mark, quoted(text) + " stands there twice");
        entries_.push_back({text, {}, false, mark.line + 1});
        where_ = Where::value;
        return;
      case Where::value:
        entries_.back().values.push_back(text);
        where_ = Where::key;
        return;
      case Where::list: entries_.back().values.push_back(text); return;
    }
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (where_ != Where::value) refuse(mark, "a list can only be the value of an option");
    where_ = Where::list;
  }
  void OnSequenceEnd() override { where_ = Where::key; }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (where_ != Where::start) {
      refuse(mark, "expected a value or a list of values, found a map inside" +
                       (entries_.empty() ? "" : " " + quoted(entries_.back().key)));
    }
    where_ = Where::key;
  }
  void OnMapEnd() override {}

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "aliases (*name) are not read: write the value out");
  }

  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& what) const {
    throw input_error(source_ + ":" + std::to_string(mark.line + 1) + ": " + what);
  }

 private:
  enum class Where { start, key, value, list };

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
  std::set<std::string> keys_;
  Where where_ = Where::start;
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
    throw input_error(source + ":" + std::to_string(e.mark.line + 1) + ": bad YAML: " + e.msg);
  }
  return entries;
}

std::vector<ConfigEntry> read_config_file(const std::string& path) {
  return parse_config_yaml(read_text_file(path, kMaxYamlBytes), path);
}

}  // namespace hearth
