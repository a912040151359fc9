// Templates that are wrong, hostile or beyond the limits: an error that names template and line.
#include "jinja/jinja.h"

#include <catch2/catch_test_macros.hpp>
#include <thread>

#include "base/error.h"
#include "support/has.h"

using namespace hearth;
using hearth::test::has;

namespace {

jinja::Limits few_steps() {
  jinja::Limits limits;
  limits.steps = 1'000'000;
  return limits;
}

std::string refusal(const std::string& source, jinja::Limits limits = few_steps()) {
  try {
    jinja::Rendered rendered =
        jinja::Template(source, "NAME").render({}, "2026-01-31", "FILE:1", limits);
    return "rendered " + rendered.text.substr(0, 100);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::input);
    return error.what();
  }
}

std::string repeated(const std::string& part, size_t times) {
  std::string text;
  for (size_t i = 0; i < times; ++i) text += part;
  return text;
}

}  // namespace

TEST_CASE("errors name the template and the line") {
  CHECK(refusal("a\n{{ 1 + }}") ==
        "chat template NAME, line 2: expected an expression, found the end of the tag }}");
  CHECK(refusal("\n\n{{ missing.x }}") ==
        "FILE:1: chat template NAME, line 3: 'missing' is undefined");
  CHECK(
      has(refusal("{% macro m() %}\n{{ 1 / 0 }}{% endmacro %}\n\n{{ m() }}"), "line 2: division"));
  CHECK(has(refusal("a\n{{ raise_exception('no ' ~ 'tools') }}"),
            "line 2: the template refuses this chat: 'no tools'"));
  CHECK(has(refusal("{{ 1 }}\n{{ 'a' | nope }}"), "line 2: unknown filter 'nope'"));
  CHECK(has(refusal("{{ 1 is nope }}"), "unknown test 'nope'"));
  CHECK(has(refusal("{% nope %}"), "unknown tag 'nope'"));
  CHECK(has(refusal("{% if 1 %}"), "endif is missing"));
  CHECK(has(refusal("{{ 'a'.encode() }}"), "encode of texts is not supported"));
  CHECK(has(refusal("{% for x in [1] recursive %}{% endfor %}"), "recursive"));
  CHECK(has(refusal("{% for x in 1, recursive %}{% endfor %}"), "recursive"));
  CHECK(has(refusal("{% for x in [1] %}{% set y %}{% break %}{% endset %}{% endfor %}"), "break"));
  CHECK(has(refusal("{{ '\\ud800' }}"), "does not exist"));
  CHECK(has(refusal("{{ 'ab' * 1000000000 }}"), "repetition that is too long"));
  CHECK(has(refusal("{{ 9223372036854775807 + 1 }}"), "64 bits"));
  CHECK(has(refusal("{{ 9223372036854775808 }}"), "64 bits"));
  CHECK(has(refusal("{{ (-9223372036854775807 - 1) // -1 }}"), "64 bits"));
}

TEST_CASE("templates read no files and reach nothing outside") {
  for (const char* tag : {"include 'a'", "import 'a' as b", "from 'a' import b", "extends 'a'"}) {
    CHECK(has(refusal("{% " + std::string(tag) + " %}"), "cannot read files"));
  }
  CHECK(has(refusal("{{ ''.__class__.__mro__ }}"), "__class__"));
  CHECK(refusal("{{ ''.__class__ }}{{ {}['__class__'] }}") == "rendered ");
  CHECK(has(refusal("{% set l = [1] %}{{ l.append(2) }}"), "'append' of 'list' object is unsafe"));
  CHECK(has(refusal("{{ {}.update({}) }}"), "unsafe"));
}

TEST_CASE("templates have limits") {
  jinja::Limits little_text = few_steps();
  little_text.text_bytes = 10 << 20;
  const std::string range = "{% for a in range(100000) %}";
  const std::string end = "{% endfor %}";
  CHECK(has(refusal(range + range + end + end), "too many steps"));
  CHECK(has(refusal("{{ range(200000) }}"), "100000"));
  CHECK(has(refusal("{{ 'a' * 1000000000 }}", jinja::Limits{}), "MiB of text"));
  CHECK(has(refusal("{{ [1] * 1000000000 }}"), "too many steps"));
  // What grows is looked at while it does.
  const std::string large =
      "{% set s = 'x' * 1000000 %}{% set l = [s] * 1000 %}{% set y = 'y' * 100000 %}";
  for (const char* expression :
       {"s.replace('x', y)", "s.join('abcdefghijklmnop')", "''.join(l)", "l | join", "l | tojson",
        "l | string", "{'a': s, 'b': l} | string", "l | tojson(indent=2)",
        "('%(a)s' * 1000) % {'a': s}", "('{0}' * 1000).format(s)", "('x\n' * 120) | indent(y)"}) {
    INFO(expression);
    const std::string message = refusal(large + "{{ " + expression + " }}", little_text);
    INFO(message);
    CHECK(has(message, "MiB of text"));
  }
  CHECK(has(refusal("{% set ns = namespace(t='aaaaaaaa') %}" + range +
                        "{% set ns.t = ns.t ~ ns.t %}" + end,
                    little_text),
            "MiB of text"));
  std::string message;  // in a thread of its own: what tests before left held raises the limit
  std::thread([&] {
    message = refusal("{% set ns = namespace(t='a' * 1000000, l=[]) %}" + range +
                          "{% set ns.l = ns.l + [ns.t ~ a] %}" + end,
                      little_text);
  }).join();
  CHECK(has(message, "more than 10 MiB of text"));
  CHECK(has(refusal(range + range + "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" +
                    end + end),
            "too many steps"));
  CHECK(has(refusal("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), "nested too deep"));
  CHECK(has(refusal("{% set ns = namespace(x=[]) %}" + range + "{% set ns.x = [ns.x] %}" + end),
            "nested deeper"));
  CHECK(has(refusal("{% set a = [1] %}" + repeated("{% set a = [a, a] %}", 60) + "{{ a }}"),
            "too many steps"));
  CHECK(has(
      refusal("{% set a = [1] %}" + repeated("{% set a = [a, a] %}", 60) + "{{ a == a[0] ~ 1 }}"),
      "too many steps"));
  CHECK(has(refusal("{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}"), "nested"));
  CHECK(has(refusal("{{ " + repeated("[", 5000) + repeated("]", 5000) + " }}"), "nested"));
  CHECK(has(refusal("{{ " + repeated("not ", 5000) + "1 }}"), "nested"));
  CHECK(has(refusal("{{ 1" + repeated(" + 1", 100000) + " }}"), "in a chain"));
  CHECK(has(refusal("{{ 1" + repeated(" | string", 100000) + " }}"), "in a chain"));
  CHECK(has(refusal(repeated("{% if 1 %}", 5000)), "nested"));
  CHECK(has(refusal("{% if 0 %}" + repeated("{% elif 0 %}", 5000) + "{% endif %}"), "nested"));
  CHECK(has(refusal("{{ '%99999999999s' % 1 }}"), "wider"));
  CHECK(has(refusal("{{ 'a'.center(99999999999) }}"), "million"));
  CHECK(has(refusal("{{ 'a'.zfill(9999999) }}"), "million"));
  CHECK(has(refusal("{{ 'a' | indent(20000) }}"), "above 10000"));
  CHECK(has(refusal("{{ [1] | slice(200000) }}"), "from 1 to 100000"));
  CHECK(has(refusal("{{ strftime_now('" + repeated("x", 1001) + "') }}"), "1000 characters"));
  CHECK(has(refusal("{{ strftime_now('%s') }}"), "%s is not supported"));
  CHECK(has(refusal(repeated("{{ 1 }}", 1'100'000)), "too long"));
}

TEST_CASE("what holds itself is dropped in the end") {
  CHECK(refusal("{% set ns = namespace() %}{% set ns.self = ns %}{{ ns.self.self is defined }}") ==
        "rendered True");
  CHECK(has(refusal("{% set ns = namespace() %}{% set ns.self = ns %}{{ ns }}"), "too deep"));
  CHECK(refusal("{% set ns = namespace() %}{% for x in [1, 2] %}{% macro m() %}{{ x }}{% endmacro "
                "%}{% set ns.m = m %}{% endfor %}{{ ns.m() }}") == "rendered 2");
  jinja::Limits few;
  few.steps = 10;
  CHECK(has(refusal("{{ 1 + 1 + 1 + 1 + 1 + 1 + 1 }}", few), "too many steps"));
}

TEST_CASE("integers beyond 64 bits are compared exactly, and computed with in few ways") {
  const auto big = jinja::Value::from_json(parse_json("18446744073709551616", "big"));
  const auto rendered = [&](const std::string& expression) -> std::string {
    try {
      jinja::Limits limits = few_steps();
      return jinja::Template("{{ " + expression + " }}", "NAME")
          .render({{"big", big}}, "2026-01-31", "FILE:1", limits)
          .text;
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::input);
      return error.what();
    }
  };
  CHECK(rendered("big == 18446744073709551616.0") == "True");
  CHECK(rendered("big < 18446744073709555712.0") == "True");  // the next double
  CHECK(rendered("18446744073709547520.0 < big") == "True");  // the one before
  CHECK(rendered("0.5 < big") == "True");
  CHECK(rendered("big < -0.5") == "False");
  CHECK(rendered("('inf'|float) > big") == "True");
  // No order with what is no number.
  for (const char* comparison : {"nan < big", "nan > big", "nan == big", "big < nan"}) {
    INFO(comparison);
    std::string with_nan = comparison;
    with_nan.replace(with_nan.find("nan"), 3, "('nan'|float)");
    CHECK(rendered(with_nan) == "False");
  }
  CHECK(rendered("big % 10") == "6");
  CHECK(has(rendered("big % big"), "an integer beyond 64 bits (%) is not supported"));
  CHECK(has(rendered("5 % big"), "an integer beyond 64 bits (%) is not supported"));
  CHECK(has(rendered("big + 1"), "an integer beyond 64 bits (+) is not supported"));
  CHECK(has(rendered("'%.2d' % big"), "an integer has no precision"));
}

TEST_CASE("a dict is searched by keys of both kinds") {
  const std::string dict = "{1: 'a', '1': 'b', 'x': 'c'}";
  CHECK(refusal("{{ " + dict + "[1] }}") == "rendered a");
  CHECK(refusal("{{ " + dict + "['1'] }}") == "rendered b");
  CHECK(refusal("{{ " + dict + "['x'] }}") == "rendered c");
  CHECK(refusal("{{ " + dict + ".x }}") == "rendered c");
  CHECK(refusal("{{ " + dict + ".y is defined }}") == "rendered False");
}

TEST_CASE("formats of integers have no precision") {
  for (const char* format : {"'{:.2d}'.format(5)", "'%.3d' % 5", "'{:.1x}'.format(5)"}) {
    INFO(format);
    CHECK(has(refusal(std::string("{{ ") + format + " }}"), "an integer has no precision"));
  }
}
