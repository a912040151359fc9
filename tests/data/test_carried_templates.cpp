// Chat templates that a result carries in place of the base's: which ones, and in which files.
#include <catch2/catch_test_macros.hpp>

#include "base/error.h"
#include "base/file_ops.h"
#include "data/chat/template_files.h"
#include "support/has.h"
#include "support/raises.h"
#include "support/temporary_directory.h"

using namespace hearth;
using namespace hearth::test;

namespace {

using Sources = std::vector<TemplateSource>;

const std::string kConfigFile = "tokenizer_config.json", kTemplateFile = "chat_template.jinja";

std::string more_file(const std::string& name) {
  return "additional_chat_templates/" + name + ".jinja";
}

/// A base and an adapter, each with a template of its own if `write` gives it one.
struct Pair {
  TemporaryDirectory directory;
  TemplateOptions options;

  Pair() {
    options.model = directory / "base";
    options.adapter = directory / "adapter";
    make_directory(options.model);
    make_directory(options.adapter);
  }
  void write(const std::string& file, const std::string& text) const {
    write_file_atomically(directory / file, text);
  }
  /// Names and texts, as "name=text ".
  std::string carried() const {
    std::string all;
    for (const TemplateSource& source : carried_templates(options)) {
      all += source.name + "=" + source.text + " ";
    }
    return all;
  }
  FileChanges changes(const Sources& templates) const {
    return template_changes(templates, options.model, false);
  }
};

TemplateSource source_of(const std::string& name, const std::string& text) {
  return {name, "here", text};
}

}  // namespace

TEST_CASE("carried templates: those of the adapter, unless the base has the same") {
  const Pair pair;
  CHECK(pair.carried().empty());
  pair.write("adapter/" + kConfigFile, R"({"chat_template": [{"name": "default", "template": "a"},
      {"name": "rag", "template": "b"}]})");
  CHECK(pair.carried() == "default=a rag=b ");
  pair.write("base/" + kConfigFile, R"({"chat_template": [{"name": "default", "template": "a"},
      {"name": "rag", "template": "other"}]})");
  CHECK(pair.carried() == "default=a rag=b ");
  pair.write("base/" + kConfigFile, R"({"chat_template": [{"name": "default", "template": "a"},
      {"name": "tool_use", "template": "b"}]})");
  CHECK(pair.carried() == "default=a rag=b ");
  pair.write("base/" + kConfigFile, R"({"chat_template": [{"name": "default", "template": "a"},
      {"name": "rag", "template": "b"}]})");
  CHECK(pair.carried().empty());
  // Templates that cannot be read are reported where a chat needs one.
  pair.write("base/" + kConfigFile, R"({"chat_template": 5})");
  CHECK(pair.carried().empty());
}

TEST_CASE("carried templates: several stand in files, and in the configuration as a list") {
  const Pair pair;
  pair.write("base/" + kConfigFile, R"({"eos_token": "</s>", "chat_template": "old"})");
  const FileChanges changes =
      pair.changes({source_of("default", "a"), source_of("Tool_use-2", "b")});
  CHECK(changes.at(kTemplateFile) == "a");
  CHECK(changes.at(more_file("Tool_use-2")) == "b");
  CHECK(changes.at("chat_template.json") == std::nullopt);
  const Json config = parse_json(changes.at(kConfigFile).value(), kConfigFile);
  CHECK(config.find("eos_token")->as_string() == "</s>");
  CHECK(config.find("chat_template")->dump() ==
        R"([{"name": "default", "template": "a"}, {"name": "Tool_use-2", "template": "b"}])");
  CHECK(pair.changes({}).empty());

  // One alone is a text.
  const FileChanges one = pair.changes({source_of("default", "a")});
  CHECK(parse_json(one.at(kConfigFile).value(), "").find("chat_template")->dump() == "\"a\"");
}

TEST_CASE("carried templates: names that are no names of files stand in the configuration alone") {
  const Pair pair;
  pair.write("base/" + kConfigFile, "{}");
  pair.write("base/" + kTemplateFile, "old");
  for (const std::string& name :
       {std::string("../up"), std::string("a.b"), std::string("a b"), std::string("a@b"),
        std::string("a[b"), std::string("a`b"), std::string("a{b"), std::string("a:b"),
        std::string("\xc3\xa9"), std::string(), std::string(129, 'a')}) {
    INFO(name);
    const FileChanges changes = pair.changes({source_of("default", "a"), source_of(name, "b")});
    CHECK(changes.at(kTemplateFile) == std::nullopt);  // the base's would hide ours
    CHECK_FALSE(changes.contains(more_file(name)));
    const Json config = parse_json(changes.at(kConfigFile).value(), kConfigFile);
    const JsonArray& list = config.find("chat_template")->as_array();
    REQUIRE(list.size() == 2);
    CHECK(list[1].find("name")->as_string() == name);
  }
  // So do templates without one that is named "default", one alone, too.
  const FileChanges changes = pair.changes({source_of("rag", "b")});
  CHECK(changes.at(kTemplateFile) == std::nullopt);
  CHECK_FALSE(changes.contains(more_file("rag")));
  CHECK(parse_json(changes.at(kConfigFile).value(), "").find("chat_template")->dump() ==
        R"([{"name": "rag", "template": "b"}])");
}

TEST_CASE("carried templates: a base without tokenizer_config.json gets files alone") {
  const Pair pair;
  const FileChanges changes = pair.changes({source_of("default", "a")});
  CHECK(changes.at(kTemplateFile) == "a");
  CHECK_FALSE(changes.contains(kConfigFile));
}

TEST_CASE("carried templates: what a saved state says of them") {
  const Sources templates{source_of("default", "a"), source_of("rag", "b")};
  const Sources back = read_templates(templates_json(templates), "manifest.json");
  REQUIRE(back.size() == 2);
  CHECK(back[1].name == "rag");
  CHECK(back[1].text == "b");
  CHECK(back[1].where == "manifest.json");
  for (const char* text :
       {"5", "{}", "[5]", R"([{"name": "x"}])", R"([{"template": "x"}])",
        R"([{"name": 5, "template": "x"}])", R"([{"name": "x", "template": 5}])"}) {
    INFO(text);
    const Raised raised =
        raised_by([&] { read_templates(parse_json(text, "list"), "manifest.json"); });
    CHECK(raised.code == ExitCode::storage);
    CHECK(raised.message == "manifest.json: no list of named chat templates");
  }
}
