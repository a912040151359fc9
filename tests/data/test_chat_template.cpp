// Which template is taken, and the chats of tests/golden/chat/ as transformers renders them.
#include "data/chat/chat_template.h"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>

#include "base/error.h"
#include "base/file_ops.h"
#include "data/chat/messages.h"
#include "support/has.h"
#include "support/temporary_directory.h"
#include "support/test_paths.h"

using namespace hearth;
using hearth::test::has;

namespace {

const Json kHi = parse_json(R"([{"role": "user", "content": "Hi"}])", "");

struct Model {
  test::TemporaryDirectory directory;
  TemplateOptions options;
  Model() { options.model = directory.path(); }
  void file(const std::string& name, const std::string& content) const {
    write_file_atomically(directory / name, content);
  }
  std::string render(const Json& tools = Json()) const {
    return ChatTemplate(options).render(kHi.as_array(), tools, false, "row").text;
  }
  std::string refusal(ExitCode code = ExitCode::input, const Json& tools = Json()) const {
    try {
      return "rendered " + render(tools);
    } catch (const Error& error) {
      CHECK(error.code() == code);
      return error.what();
    }
  }
};

const Json kTools = JsonArray{JsonObject{{"name", "f"}}};

}  // namespace

TEST_CASE("templates and tokens of a configuration: entries without a name, tokens of its own") {
  Model model;
  for (const char* entry : {R"({"name": 5, "template": "t"})", R"({"name": "default"})", "5"}) {
    INFO(entry);
    model.file("tokenizer_config.json", std::string(R"({"chat_template": [)") + entry + "]}");
    CHECK(has(model.refusal(), "expected the strings name and template"));
  }
  // A configuration with added_tokens_decoder is whole: no other file is asked for tokens.
  const std::string config = R"({"chat_template": "{{ eos_token }}", "eos_token": "</s>")";
  model.file("special_tokens_map.json", R"({"eos_token": "<e>"})");
  model.file("tokenizer_config.json", config + "}");
  CHECK(model.render() == "<e>");
  model.file("tokenizer_config.json", config + R"(, "added_tokens_decoder": {}})");
  CHECK(model.render() == "</s>");
}

TEST_CASE("the template of a model: files before the configuration, names by the tools") {
  Model model;
  CHECK(has(model.refusal(), "no chat template"));
  model.file("tokenizer_config.json", R"({"chat_template": "config {{ bos_token }}{{ eos_token }}",
    "bos_token": "<s>", "eos_token": {"content": "</s>"}, "pad_token": null})");
  CHECK(model.render() == "config <s></s>");
  model.file("special_tokens_map.json", R"({"eos_token": {"content": "<e>"}})");
  CHECK(model.render() == "config <s><e>");
  model.file("chat_template.jinja", "file {{ tools is none }} {{ pad_token is defined }}\n");
  CHECK(model.render() == "file True False");
  make_directory(model.directory / "additional_chat_templates");
  model.file("additional_chat_templates/tool_use.jinja", "tools {{ tools[0].name }}");
  model.file("additional_chat_templates/note.txt", "{{");
  CHECK(model.render() == "file True False");
  CHECK(model.render(kTools) == "tools f");

  model.options.choice = "tool_use";
  CHECK(has(model.refusal(), "'NoneType' object has no element 0"));
  CHECK(model.render(kTools) == "tools f");
  model.options.choice = "chatml";
  CHECK(model.render() == "<|im_start|>user\nHi<|im_end|>\n");
  model.file("mine.jinja", "mine");
  model.options.choice = model.directory / "mine.jinja";
  CHECK(model.render() == "mine");
  model.options.choice = "llama3";
  CHECK(has(model.refusal(ExitCode::usage), "'chatml', 'default', 'tool_use'"));
}

TEST_CASE("named templates of the configuration") {
  Model model;
  model.file("tokenizer_config.json",
             R"({"chat_template": [{"name": "default", "template": "a"},
                 {"name": "tool_use", "template": "b"}, {"name": "rag", "template": "c"}]})");
  CHECK(model.render() == "a");
  CHECK(model.render(kTools) == "b");
  model.options.choice = "rag";
  CHECK(model.render(kTools) == "c");
  model.options.choice = "";
  model.file("tokenizer_config.json", R"({"chat_template": [{"name": "x", "template": "a"}]})");
  CHECK(has(model.refusal(), "named 'default'"));
  model.file("tokenizer_config.json", R"({"chat_template": [{"name": "x"}]})");
  CHECK(has(model.refusal(), "name and template"));
  model.file("tokenizer_config.json", R"({"chat_template": "a", "bos_token": 7})");
  CHECK(has(model.refusal(), "bos_token"));
  model.file("tokenizer_config.json", "{\"chat_template\": \"a\\n{{ b + }}\"}");
  CHECK(
      has(model.refusal(), "tokenizer_config.json: chat_template, line 2: expected an expression"));
  model.file("chat_template.jinja", "\xff");
  CHECK(has(model.refusal(), "UTF-8"));
}

TEST_CASE("today is the date of --template-date") {
  Model model;
  model.file("chat_template.jinja", "{{ strftime_now('%d %b %Y %H:%M') }}");
  model.options.date = "2026-01-31";
  CHECK(model.render() == "31 Jan 2026 00:00");
  for (const char* wrong : {"2026-02-30", "2026-1-31", "31.01.2026", "2026-01-31 "}) {
    model.options.date = wrong;
    CHECK(has(model.refusal(ExitCode::usage), "the template date"));
  }
  const ChatTemplate plain("x", "t", Json(), "2026-01-31");
  const ChatTemplate dated("{{ strftime_now('x') }}", "t", Json(), "2026-01-31");
  CHECK(plain.identity() == ChatTemplate("x", "t", Json(), "2026-02-01").identity());
  CHECK(dated.identity() !=
        ChatTemplate("{{ strftime_now('x') }}", "t", Json(), "2026-02-01").identity());
  CHECK(plain.identity() != dated.identity());
}

// HEARTH_CHAT_CASES names another file of the same kind (scripts/parity/templates.py).
TEST_CASE("chats as transformers renders them") {
  const char* other = std::getenv("HEARTH_CHAT_CASES");
  const std::string path = other != nullptr ? other : test::test_data("/chat/templates.json");
  const Json golden = parse_json(read_file(path), path, {200});
  const auto& templates = golden.find("templates")->as_object();
  CHECK(templates.size() >= 20);
  size_t cases = 0;
  size_t refused = 0;
  for (const auto& [name, source] : templates) {
    const ChatTemplate rendered(source.as_string(), name, *golden.find("special_tokens"),
                                golden.find("date")->as_string());
    for (const Json& each : golden.find("cases")->find(name)->as_array()) {
      const Json& chat = golden.find("chats")->as_array()[each.find("chat")->as_uint()];
      const Json* expected = each.find("text");
      INFO(name << " of " << chat.dump());
      ++cases;
      try {
        const RenderedChat got =
            rendered.render(chat.find("messages")->as_array(), *chat.find("tools"),
                            each.find("prompt")->as_bool(), "row");
        REQUIRE_FALSE(expected->is_null());
        REQUIRE(got.text == expected->as_string());
        std::string marked;
        for (const TextSpan& span : got.generated) {
          marked += got.text.substr(span.begin, span.end - span.begin) + "\n";
        }
        if (each.find("generated") != nullptr) {
          REQUIRE(marked == each.find("generated")->as_string());
        }
      } catch (const Error& error) {
        INFO(error.what());
        REQUIRE(expected->is_null());
        ++refused;
      }
    }
  }
  CHECK(cases > 400);
  CHECK(refused * 4 < cases);
}
