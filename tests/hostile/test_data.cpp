// Rows of data files that are none.
#include <catch2/catch_test_macros.hpp>

#include "hostile/hostile.h"

using namespace hearth;
using namespace hearth::test;

namespace {

constexpr const char* kRows = "rows.jsonl";
constexpr const char* kGood = "{\"input_ids\": [1, 2, 3]}\n";

/// The third line, between good ones.
Case line(const std::string& name, const std::string& text, std::vector<std::string> says = {}) {
  says.push_back("rows.jsonl:3:");
  return {name,
          [=](const Place& p) { p.write(kRows, std::string(kGood) + kGood + text + "\n" + kGood); },
          says};
}

Case accepted(const std::string& name, const std::string& text) {
  return {name, [=](const Place& p) { p.write(kRows, text); }, {}, 0};
}

}  // namespace

TEST_CASE("hostile: rows of JSON Lines") {
  const std::string chat =
      "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, "
      "{\"role\": \"assistant\", \"content\": \"b\"}]}";
  const std::string nul("{\"text\": \"a\0b\"}", 14);
  run_table(
      "data rows",
      {
          accepted("no newline at the end", std::string(kGood) + "{\"input_ids\": [1, 2]}"),
          accepted("CRLF", "{\"input_ids\": [1, 2, 3]}\r\n{\"text\": \"a\"}\r\n"),
          accepted("a byte order mark", std::string("\xef\xbb\xbf") + kGood),
          accepted("empty lines", std::string("\n\n") + kGood + "\n  \n"),
          accepted("a row of one id among others", std::string(kGood) + "{\"input_ids\": [1]}\n"),
          accepted("a row without trained tokens among others",
                   std::string(kGood) + "{\"input_ids\": [1, 2], \"labels\": [-100, -100]}\n"),
          accepted("keys of no meaning",
                   "{\"input_ids\": [1, 2, 3], \"id\": {\"a\": [1, null]}}\n"),
          accepted("escapes", "{\"text\": \"\\ud83d\\ude00\\u0000\\n\"}\n"),
          accepted("a chat", chat + "\n"),
          line("no JSON", "hello"),
          line("cut off", "{\"input_ids\": [1, 2"),
          line("a comma too many", "{\"input_ids\": [1, 2,]}"),
          line("two objects", "{\"input_ids\": [1, 2]} {\"input_ids\": [1, 2]}"),
          line("a byte order mark inside", std::string("\xef\xbb\xbf") + "{\"text\": \"a\"}"),
          line("no UTF-8", "{\"text\": \"\xc3\x28\"}", {"UTF-8"}),
          line("overlong UTF-8", "{\"text\": \"\xc0\xaf\"}", {"UTF-8"}),
          line("a surrogate in UTF-8", "{\"text\": \"\xed\xa0\x80\"}", {"UTF-8"}),
          line("UTF-8 cut off", "{\"text\": \"\xe2\x82", {"UTF-8"}),
          line("Latin-1", "{\"text\": \"caf\xe9\"}", {"UTF-8"}),
          line("a NUL byte", nul, {"NUL"}),
          line("a control character", "{\"text\": \"a\tb\"}"),
          line("a lone surrogate", "{\"text\": \"\\ud800\"}"),
          line("surrogates the wrong way round", "{\"text\": \"\\ude00\\ud83d\"}"),
          line("half an escape", "{\"text\": \"\\u12\"}"),
          line("an unknown escape", "{\"text\": \"\\x41\"}"),
          line("a carriage return inside a string", "{\"text\": \"a\rb\"}"),
          line("a key twice", "{\"text\": \"a\", \"text\": \"b\"}", {"duplicate", "text"}),
          line("a key twice inside",
               "{\"messages\": [{\"role\": \"user\", \"role\": \"assistant\", \"content\": \"\"}]}",
               {"duplicate", "role"}),
          line("a string", "\"text\"", {"object"}),
          line("a number", "7", {"object"}),
          line("null", "null", {"object"}),
          line("an array", "[{\"text\": \"a\"}]", {"array"}),
          line("no key that is known", "{\"txet\": \"a\"}"),
          line("no key", "{}"),
          line("two kinds", "{\"text\": \"a\", \"input_ids\": [1, 2]}", {"--format"}),
          line("a text that is null", "{\"text\": null}"),
          line("a text that is a number", "{\"text\": 5}", {"text"}),
          line("a text that is a list", "{\"text\": [\"a\"]}", {"text"}),
          line("an empty text", "{\"text\": \"\"}"),
          line("100 brackets", "{\"a\": " + std::string(100, '[') + std::string(100, ']') + "}",
               {"nested"}),
          line("1,000,000 brackets", std::string(1'000'000, '['), {"nested"}),
          line("a key of 1,000,000 letters",
               "{\"" + std::string(1'000'000, 'k') + "\": 1, \"" + std::string(1'000'000, 'k') +
                   "\": 2}",
               {"duplicate"}),
          line("a value that writes to the terminal",
               "{\"input_ids\": \"\\u001b[2J\\u0007\\r\\n\"}", {"input_ids"}),
          line("a number of 100,000 digits",
               "{\"input_ids\": [" + std::string(100'000, '9') + "]}"),
          line("no ids", "{\"input_ids\": []}", {"input_ids"}),
          line("ids that are text", "{\"input_ids\": \"1 2 3\"}", {"input_ids"}),
          line("an id that is text", "{\"input_ids\": [1, \"2\"]}", {"input_ids[1]"}),
          line("an id that is a float", "{\"input_ids\": [1, 2.0]}", {"input_ids[1]", "2.0"}),
          line("an id that is true", "{\"input_ids\": [1, true]}", {"input_ids[1]"}),
          line("an id that is null", "{\"input_ids\": [1, null]}", {"input_ids[1]"}),
          line("a list of lists", "{\"input_ids\": [[1, 2]]}", {"input_ids[0]"}),
          line("an id below 0", "{\"input_ids\": [1, -1]}", {"input_ids[1]", "-1"}),
          line("an id of -100", "{\"input_ids\": [1, -100]}", {"input_ids[1]"}),
          line("an id of the vocabulary's size", "{\"input_ids\": [1, 300]}",
               {"input_ids[1]", "300"}),
          line("an id of 2^31", "{\"input_ids\": [1, 2147483648]}", {"input_ids[1]"}),
          line("an id of 2^32 + 1", "{\"input_ids\": [1, 4294967297]}", {"input_ids[1]"}),
          line("an id of 2^63", "{\"input_ids\": [1, 9223372036854775808]}", {"input_ids[1]"}),
          line("an id of 1e400", "{\"input_ids\": [1, 1e400]}"),
          line("labels too few", "{\"input_ids\": [1, 2, 3], \"labels\": [1, 2]}", {"labels"}),
          line("labels too many", "{\"input_ids\": [1, 2], \"labels\": [1, 2, 3]}", {"labels"}),
          line("no label", "{\"input_ids\": [1, 2], \"labels\": []}", {"labels"}),
          line("a label of -1", "{\"input_ids\": [1, 2], \"labels\": [1, -1]}", {"labels[1]"}),
          line("a label out of range", "{\"input_ids\": [1, 2], \"labels\": [1, 300]}",
               {"labels[1]", "300"}),
          line("a label that is text", "{\"input_ids\": [1, 2], \"labels\": [1, \"2\"]}",
               {"labels[1]"}),
          line("labels that are a number", "{\"input_ids\": [1, 2], \"labels\": 2}", {"labels"}),
          line("padding", "{\"input_ids\": [1, 0], \"attention_mask\": [1, 0]}",
               {"attention_mask"}),
          line("a mask of another length", "{\"input_ids\": [1, 2], \"attention_mask\": [1]}",
               {"attention_mask"}),
          line("no messages", "{\"messages\": []}", {"messages"}),
          line("messages that are text", "{\"messages\": \"hi\"}", {"messages"}),
          line("a message that is text", "{\"messages\": [\"hi\"]}", {"messages[0]"}),
          line("no role", "{\"messages\": [{\"content\": \"a\"}]}", {"messages[0].role"}),
          line("an empty role", "{\"messages\": [{\"role\": \"\", \"content\": \"a\"}]}",
               {"messages[0].role"}),
          line("a role that is a number", "{\"messages\": [{\"role\": 1, \"content\": \"a\"}]}",
               {"messages[0].role"}),
          line("content that is a number",
               "{\"messages\": [{\"role\": \"assistant\", \"content\": 3}]}",
               {"messages[0].content"}),
          line("content that is an image",
               "{\"messages\": [{\"role\": \"assistant\", \"content\": [{\"type\": \"image\"}]}]}",
               {"messages[0].content[0]"}),
          line("no assistant", "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}",
               {"assistant"}),
      },
      eval_words());
}

TEST_CASE("hostile: rows of the other formats") {
  const auto turns = [](const std::string& list) { return "{\"conversations\": [" + list + "]}"; };
  const std::string gpt = "{\"from\": \"gpt\", \"value\": \"a\"}";
  const std::string user = "{\"role\": \"user\", \"content\": \"a\"}";
  const std::string assistant = "{\"role\": \"assistant\", \"content\": \"b\"}";
  run_table(
      "rows of other formats",
      {
          accepted("texts", "{\"prompt\": \"a\", \"completion\": \"b\"}\n"),
          accepted("messages",
                   "{\"prompt\": [" + user + "], \"completion\": [" + assistant + "]}\n"),
          accepted("alpaca",
                   "{\"instruction\": \"a\", \"input\": null, \"output\": \"b\", "
                   "\"history\": [[\"c\", \"d\"]]}\n"),
          accepted("sharegpt", turns("{\"from\": \"human\", \"value\": \"a\"}, " + gpt) + "\n"),
          line("no completion", "{\"prompt\": \"a\"}", {"prompt without completion"}),
          line("a completion that is null", "{\"prompt\": \"a\", \"completion\": null}"),
          line("a prompt that is a number", "{\"prompt\": 1, \"completion\": \"b\"}", {"prompt"}),
          line("a completion that is an object", "{\"prompt\": \"a\", \"completion\": {}}",
               {"completion"}),
          line("a text and messages", "{\"prompt\": \"a\", \"completion\": [" + assistant + "]}",
               {"completion"}),
          line("a prompt without messages", "{\"prompt\": [], \"completion\": [" + assistant + "]}",
               {"prompt"}),
          line("a completion of the user",
               "{\"prompt\": [" + user + "], \"completion\": [" + user + "]}",
               {"completion", "assistant"}),
          line("a completion without role",
               "{\"prompt\": [" + user + "], \"completion\": [{\"content\": \"a\"}]}",
               {"completion[0].role"}),
          line("an instruction that is a list", "{\"instruction\": [], \"output\": \"b\"}",
               {"instruction"}),
          line("an output that is a number", "{\"instruction\": \"a\", \"output\": 1}", {"output"}),
          line("an input that is true",
               "{\"instruction\": \"a\", \"output\": \"b\", \"input\": true}", {"input"}),
          line("a system that is a list",
               "{\"instruction\": \"a\", \"output\": \"b\", \"system\": []}", {"system"}),
          line("a history that is text",
               "{\"instruction\": \"a\", \"output\": \"b\", \"history\": \"c\"}", {"history"}),
          line("a history of three",
               "{\"instruction\": \"a\", \"output\": \"b\", \"history\": [[\"1\", \"2\", "
               "\"3\"]]}",
               {"history[0]"}),
          line("conversations that are text", "{\"conversations\": \"a\"}", {"conversations"}),
          line("no turns", turns(""), {"conversations"}),
          line("a turn that is text", turns("\"a\""), {"conversations[0]"}),
          line("nobody speaks", turns("{\"value\": \"a\"}"), {"conversations[0].from"}),
          line("nothing is said", turns("{\"from\": \"gpt\"}"), {"conversations[0].value"}),
          line("somebody unknown", turns("{\"from\": \"\\u001b[2J\", \"value\": \"a\"}"),
               {"conversations[0].from"}),
          line("a call that is none", turns("{\"from\": \"function_call\", \"value\": \"a\"}"),
               {"conversations[0].value"}),
          line("a call of 100,000 brackets",
               turns("{\"from\": \"function_call\", \"value\": \"" + std::string(100'000, '[') +
                     "\"}"),
               {"conversations[0].value"}),
          line("two of the system",
               "{\"system\": \"a\", \"conversations\": [{\"from\": \"system\", \"value\": "
               "\"b\"}, " +
                   gpt + "]}",
               {"system"}),
          line("tools that are a number", "{\"messages\": [" + assistant + "], \"tools\": 1}",
               {"tools"}),
          line("tools that are no JSON", "{\"messages\": [" + assistant + "], \"tools\": \"[\"}",
               {"tools"}),
          line("a tool that is text", "{\"messages\": [" + assistant + "], \"tools\": [\"a\"]}",
               {"tools[0]"}),
          line("two kinds", "{\"prompt\": \"a\", \"completion\": \"b\", \"messages\": []}",
               {"--format"}),
      },
      eval_words());
}
