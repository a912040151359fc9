// Variables of chat templates: --template-args.
#include "data/chat/template_args.h"

#include <catch2/catch_test_macros.hpp>

#include "base/error.h"
#include "base/file_ops.h"
#include "data/chat/template_files.h"
#include "data/samples/row_key.h"
#include "support/raises.h"
#include "support/temporary_directory.h"

using namespace hearth;
using namespace hearth::test;

namespace {

// As Qwen3's: thinking is on unless the variable says false.
const std::string kThinks =
    "\n{% for m in messages %}{{ m.content }}{% endfor %}"
    "{% if enable_thinking is defined and enable_thinking is false %}<think></think>{% endif %}"
    "{{ name }}";

struct ModelWithTemplate {
  TemporaryDirectory directory;
  TemplateOptions options;
  explicit ModelWithTemplate(const std::string& source = kThinks) {
    options.model = directory.path();
    write_file_atomically(directory / "chat_template.jinja", source);
  }
  std::string render(std::vector<std::string> args) {
    options.args = std::move(args);
    const Json chat = parse_json(R"([{"role": "user", "content": "Hi"}])", "");
    return ChatTemplate(options).render(chat.as_array(), Json(), false, "row").text;
  }
};

}  // namespace

TEST_CASE("template args: values are truths, numbers and texts") {
  CHECK(template_args({"a=false", "b=TRUE", "c=3", "d=-0.5", "e=x=y", "f=", "g=\"3\"", "h=\"x"})
            .dump() ==
        R"({"a": false, "b": true, "c": 3, "d": -0.5, "e": "x=y", "f": "", "g": "3", "h": "\"x"})");
  CHECK(template_args({}).as_object().empty());
}

TEST_CASE("template args: names that are none, are taken, or are given twice") {
  for (const std::string text : {"x", "=1", "1a=1", "a-b=1", "a b=1", ""}) {
    const Raised raised = raised_by([&] { template_args({text}); });
    CHECK(raised.code == ExitCode::usage);
    CHECK(raised.says("expected NAME=VALUE"));
  }
  for (const std::string name : {"messages", "tools", "add_generation_prompt", "true", "loop"}) {
    CHECK(raised_by([&] { template_args({name + "=1"}); }).says("is set by the chat"));
  }
  CHECK(raised_by([&] { template_args({"a=1", "a=2"}); }).says("'a' is given twice"));
}

TEST_CASE("template args: the template sees them, and they win over special tokens") {
  ModelWithTemplate model;
  CHECK(model.render({}) == "\nHi");
  CHECK(model.render({"enable_thinking=false"}) == "\nHi<think></think>");
  CHECK(model.render({"enable_thinking=true", "name=N"}) == "\nHiN");
  ModelWithTemplate special("{{ bos_token }}");
  write_file_atomically(special.directory / "tokenizer_config.json", R"({"bos_token": "<s>"})");
  CHECK(special.render({}) == "<s>");
  CHECK(special.render({"bos_token=B"}) == "B");
}

TEST_CASE("template args: a result's template has them as defaults, and others may say otherwise") {
  ModelWithTemplate model;
  const std::string trained = model.render({"enable_thinking=false", "name=a\"b\nc"});
  const std::vector<TemplateSource> carried = carried_templates(model.options);
  REQUIRE(carried.size() == 1);
  CHECK(carried[0].text.ends_with(kThinks));
  ModelWithTemplate result(carried[0].text);
  CHECK(result.render({}) == trained);
  CHECK(result.render({"enable_thinking=true"}) == "\nHia\"b\nc");
  // Without args, nothing is carried: the base's files stay.
  model.options.args.clear();
  CHECK(carried_templates(model.options).empty());
}

TEST_CASE("template args: cached rows of other values are other rows") {
  ModelWithTemplate model;
  RowOptions options;
  options.model = model.directory.path();
  const Digest without = conversion_key(options);
  options.template_args = {"enable_thinking=false"};
  const Digest with = conversion_key(options);
  options.template_args = {"enable_thinking=true"};
  CHECK(without != with);
  CHECK(conversion_key(options) != with);
}
