#include <fmt/format.h>

#include <catch2/catch_test_macros.hpp>
#include <ctime>
#include <string>

#include "base/sanitized.h"
#include "support/raises.h"
#include "topology/hwloc_xml.h"
#include "topology/number_set.h"
#include "topology/xml_document.h"

using namespace hearth;
using hearth::test::Raised;
using hearth::test::raised_by;

namespace {

double seconds_since(std::clock_t begin) {
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

Raised refused(const std::string& text, const XmlLimits& limits = {}) {
  const std::clock_t begin = std::clock();  // of this process: others may be busy
  Raised raised = raised_by([&] { XmlDocument(text, "f.xml", limits); });
  CHECK(seconds_since(begin) < (kSanitized ? 30 : 5));
  CHECK(raised.code == ExitCode::input);
  CHECK(raised.message.starts_with("f.xml: line "));
  return raised;
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace

TEST_CASE("elements come in the order of their tags") {
  const std::string text =
      "\xEF\xBB\xBF<?xml version=\"1.0\"?>\n<!-- a <b> c -->\n<!DOCTYPE a SYSTEM \"a.dtd\">\n"
      "<a x='1' y = \"&lt;&#65;&#x20AC;&quot;'\"> t &amp; u<b/><![CDATA[<c>]]>\n<c><d z=''/></c >\n"
      "</a>\n<!-- end -->";
  const XmlDocument document(text, "f.xml");
  const auto& e = document.elements();
  REQUIRE(e.size() == 4);
  CHECK(e[0].name == "a");
  CHECK(e[0].end == 4);
  CHECK(e[0].text == " t &amp; u");
  CHECK(e[0].line == 4);
  CHECK(e[1].name == "b");
  CHECK(e[1].end == 2);
  CHECK(e[2].name == "c");
  CHECK(e[2].end == 4);
  CHECK(e[2].line == 5);
  CHECK(e[3].name == "d");
  CHECK(document.attribute(e[0], "x") == "1");
  CHECK(document.attribute(e[0], "y") == "<A\xE2\x82\xAC\"'");
  CHECK_FALSE(document.attribute(e[0], "z"));
  CHECK(document.attribute(e[3], "z") == "");
  CHECK(document.attributes(e[0]).size() == 2);
  const std::string odd = "<a x=\"\xFF\"/>";
  const XmlDocument other(odd, "f.xml");
  CHECK(other.attribute(other.elements()[0], "x") == "\xEF\xBF\xBD");
}

TEST_CASE("what is not well-formed is refused") {
  for (const std::string text : {"",
                                 " ",
                                 "a",
                                 "<",
                                 "<a",
                                 "<a>",
                                 "<a></b>",
                                 "<a/><b/>",
                                 "<a/>x",
                                 "<a b/>",
                                 "<a b=c/>",
                                 "<a b=\"c/>",
                                 "<a b='1' b='2'/>",
                                 "<a b='1'c='2'/>",
                                 "<a b='<'/>",
                                 "<1a",
                                 "</a>",
                                 "<a/ >",
                                 "<a><!-- </a>",
                                 "<a><![CDATA[</a>",
                                 "<?xml <a/>",
                                 "<a><!ELEMENT b></a>",
                                 "< a/>",
                                 "<a/><!DOCTYPE a>",
                                 "<!DOCTYPE a>",
                                 "<a>\n\n</a\n"}) {
    CAPTURE(text);
    refused(text);
  }
  CHECK(refused("<a>\n<b>\n</a>").says("line 3: element 'b' is ended by 'a'"));
  CHECK(refused(std::string("<a\0/>", 5)).says("line 1: not XML: a NUL byte"));
  CHECK(refused(std::string("<a>\n</a>\n\0", 10)).says("line 3: not XML: a NUL byte"));
}

TEST_CASE("entities do not grow") {
  for (const std::string entity : {"&b;", "&", "&;", "&#;", "&#0;", "&#xD800;", "&#x110000;", "&#9",
                                   "&amp", "&#-1;", "&#x;", "&#99999999999999999999;"}) {
    CAPTURE(entity);
    CHECK(refused("<a b='" + entity + "'/>").says("entity"));
    CHECK(refused("<a>" + entity + "</a>").says("entity"));
  }
  std::string bomb = "<!DOCTYPE topology [<!ENTITY a \"aaaaaaaaaa\">";
  for (char c = 'b'; c < 'k'; ++c) {
    bomb += std::string("<!ENTITY ") + c + " \"" +
            repeated(std::string("&") + static_cast<char>(c - 1) + ";", 10) + "\">";
  }
  CHECK(refused(bomb + "]><topology>&j;</topology>").says("declarations of its own"));
  CHECK(refused("<!DOCTYPE a SYSTEM 'file:///etc/passwd' [<!ENTITY % x SYSTEM 'y'> %x;]><a/>")
            .says("declarations of its own"));
}

TEST_CASE("depth, size and counts have limits") {
  CHECK_NOTHROW(XmlDocument(repeated("<a>", 256) + repeated("</a>", 256), "f.xml"));
  CHECK(refused(repeated("<a>", 257) + repeated("</a>", 257)).says("deeper than 256"));
  CHECK(refused(repeated("<a>", 1000000)).says("deeper than 256"));
  CHECK(refused("<a>" + repeated("<b/>", 10) + "</a>", {.elements = 10}).says("10 elements"));
  CHECK(refused("<a>" + repeated("<b/>", 1 << 20) + "</a>").says("1048576 elements"));
  std::string many = "<a";
  for (int i = 0; i < 65; ++i) many += " b" + std::to_string(i) + "=''";
  CHECK(refused(many + "/>").says("64 attributes"));
  CHECK(refused("<a>" + std::string(1 << 22, '\n') + "<b" + std::string(1 << 22, ' '))
            .says("ends in a tag"));
  CHECK(refused("<a b='" + std::string(1 << 22, 'x')).says("does not end"));
}

TEST_CASE("hostile topologies end in time") {
  const auto head = [](const std::string& attributes) {
    return "<topology version=\"2.0\"><object type=\"Machine\" " + attributes + ">";
  };
  const std::string tail = "</object></topology>";
  const auto raised = [](const std::string& text) {
    const std::clock_t begin = std::clock();  // of this process: others may be busy
    Raised r = raised_by([&] { parse_topology(text, "f.xml"); });
    CHECK(seconds_since(begin) < (kSanitized ? 60 : 10));
    return r;
  };
  // A set of far too many CPUs, and one of all that there are.
  CHECK(raised(head("cpuset=\"" + repeated("0xffffffff,", 100000) + "0x1\"") + tail)
            .says("no set of numbers"));
  CHECK(raised(head("cpuset=\"0xf...f\"") + tail).says("no CPU that may be used"));
  // As many objects as elements may be.
  const auto set_of = [](int number) {  // of this number alone
    return fmt::format("\"0x{:x}{}\"", 1u << (number % 32),
                       std::string(static_cast<size_t>(number / 32), ','));
  };
  const auto pu = [&](int number) {
    return fmt::format("<object type=\"PU\" os_index=\"{}\" cpuset={}/>", number, set_of(number));
  };
  const auto node = [&](int number) {
    return fmt::format("<object type=\"NUMANode\" os_index=\"{}\" cpuset=\"0xf...f\" nodeset={}/>",
                       number, set_of(number));
  };
  std::string cpus, nodes;
  for (int i = 0; i < 8192; ++i) {
    cpus += pu(i);
    nodes += node(i);
  }
  const std::string machine = head("cpuset=\"0xf...f\" nodeset=\"0xf...f\"");
  CHECK(raised(machine + node(0) + cpus + tail).code == ExitCode::done);
  CHECK(raised(machine + cpus + nodes + tail).says("NUMA nodes"));
  CHECK(raised(machine + cpus + pu(kMostCpus) + tail).says("number"));
  // Many objects below one with a long set, which is read once.
  const std::string wide = head("cpuset=\"" + repeated("0xffffffff,", 2000) + "0x1\"");
  CHECK(raised(wide + repeated("<object type=\"Group\" cpuset=\"0x1\"/>", 300'000) + tail)
            .says("no CPU"));
}

TEST_CASE("sets of numbers") {
  const auto has = [](const char* text, int number) {
    const auto set = NumberSet::parse(text);
    REQUIRE(set);
    return set->contains(number);
  };
  CHECK(has("0x00000005", 0));
  CHECK_FALSE(has("0x00000005", 1));
  CHECK(has("0x00000005", 2));
  CHECK(has("0x1,0x0", 32));
  CHECK(has("0x1,,0x80000000", 64));
  CHECK(has("0x1,,0x80000000", 31));
  CHECK_FALSE(has("0x1,,0x80000000", 32));
  CHECK_FALSE(has("0x1", 1000));
  CHECK_FALSE(has("0x1", -1));
  CHECK(has("0xf...f", 0));
  CHECK(has("0xf...f", 65535));
  CHECK(has("0xf...f,0x0", 32));
  CHECK_FALSE(has("0xf...f,0x0", 31));
  const auto within = [](const char* a, const char* b) {
    return NumberSet::parse(a)->is_within(*NumberSet::parse(b));
  };
  CHECK(within("0x5", "0x7"));
  CHECK_FALSE(within("0x8", "0x7"));
  CHECK_FALSE(within("0x1,0x0", "0x7"));
  CHECK(within("0x0,0x1", "0x7"));
  CHECK(within("0x1,0x0", "0xf...f"));
  CHECK(within("0xf...f", "0xf...f,0xffffffff"));
  CHECK_FALSE(within("0xf...f", "0xf...f,0x1"));
  CHECK_FALSE(within("0xf...f,0x0", "0xffffffff,0xffffffff"));
  CHECK(NumberSet::parse("0x1,,0x0")->is_just(64));
  for (const char* text : {"0x0", "0x3", "0x4", "0x1,0x2", "0xf...f,0x2"}) {
    CAPTURE(text);
    CHECK_FALSE(NumberSet::parse(text)->is_just(1));
  }
  CHECK(NumberSet::parse("0x6")->first() == 1);
  CHECK(NumberSet::parse("0x0")->first() == -1);
  CHECK(NumberSet::parse("0xf...f,0x0")->first() == 32);
  for (const char* text :
       {"", "x", "0x", "0xg", "0x1 ", "0x100000000", "-1", "0x1;0x2", "0xf...g"}) {
    CAPTURE(text);
    CHECK_FALSE(NumberSet::parse(text));
  }
}
