// chat, and generate for rows: each answer is what generate says to the same messages.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "support/test_paths.h"
#include "tools/workplace.h"

using namespace hearth;
using namespace hearth::test;

namespace {

struct Talk : Workplace {
  std::vector<std::string> words(const std::string& command, const std::vector<std::string>& more,
                                 int tokens = 12) const {
    std::vector<std::string> all{command,
                                 "--model",
                                 d / "model",
                                 "--threads",
                                 "1",
                                 "--quiet",
                                 "--max-new-tokens",
                                 std::to_string(tokens),
                                 "--template-date",
                                 "2026-01-02"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string out(const std::vector<std::string>& arguments, const std::string& input = "") const {
    const ProgramResult r = run(arguments, input);
    INFO(r.err);
    REQUIRE(r.exit_code == 0);
    return r.out;
  }
  std::vector<Json> documents(const std::vector<std::string>& arguments,
                              const std::string& input = "") const {
    std::vector<Json> lines;
    std::istringstream text(out(arguments, input));
    for (std::string line; std::getline(text, line);) lines.push_back(parse_json(line, "out"));
    return lines;
  }
  Json generated(const std::vector<std::string>& more, int tokens = 12) const {
    std::vector<std::string> all = words("generate", more, tokens);
    all.push_back("--json");
    return parse_json(out(all), "out");
  }
  std::string text(const std::vector<std::string>& more, int tokens = 12) const {
    return generated(more, tokens).find("text")->as_string();
  }
  std::string answer(const JsonArray& messages, std::vector<std::string> more = {}) const {
    write(d / "q.json", Json(messages).dump());
    more.insert(more.end(), {"--messages", d / "q.json"});
    return text(more);
  }
};

Json message(const char* role, const std::string& content) {
  return JsonObject{{"role", role}, {"content", content}};
}

const std::vector<std::string> kDrawn{
    "--temperature",        "1.5", "--top-k", "40", "--min-p", "0.001", "--seed", "9",
    "--repetition-penalty", "1.3"};

}  // namespace

TEST_CASE("chat: each answer is generate's to the same history, beyond the first room, too") {
  const Talk w;
  std::vector<std::string> more = kDrawn;
  more.insert(more.end(), {"--json"});
  // Some 40 tokens a turn: the room of 128 + 12 tokens grows twice.
  const std::vector<std::string> turns{"first of the turns", "second", "",
                                       "the fourth of them", "fifth",  "and the last one"};
  std::string input;
  for (const std::string& turn : turns) input += turn + "\n";
  for (const bool system : {false, true}) {
    if (system) more.insert(more.end(), {"--system", "Be brief."});
    const std::vector<Json> answers = w.documents(w.words("chat", more), input);
    REQUIRE(answers.size() == turns.size());
    JsonArray history;
    if (system) history.push_back(message("system", "Be brief."));
    for (size_t i = 0; i < turns.size(); ++i) {
      history.push_back(message("user", turns[i]));
      const std::string content = answers[i].find("content")->as_string();
      CHECK(answers[i].as_object().size() == 1);
      CHECK(content == w.answer(history, kDrawn));
      history.push_back(message("assistant", content));
    }
    CHECK(history.size() >= 12);
  }
}

TEST_CASE("chat: stdout has the answers alone, /exit and the end of the input end it") {
  const Talk w;
  const std::string hello = w.out(w.words("chat", {}), "hello\n");
  REQUIRE(hello.ends_with('\n'));
  CHECK(w.out(w.words("chat", {}), "hello") == hello);
  CHECK(w.out(w.words("chat", {}), "hello\r\n") == hello);
  CHECK(w.out(w.words("chat", {}), "hello\n/exit\nmore\n") == hello);
  CHECK(w.out(w.words("chat", {}), "").empty());
  const std::string two = w.out(w.words("chat", {}), "hello\nmore\n");
  CHECK(two.size() > hello.size());
  CHECK(two.starts_with(hello));
  // Without --quiet, nothing else either.
  std::vector<std::string> loud = w.words("chat", {});
  loud.erase(std::find(loud.begin(), loud.end(), "--quiet"));
  CHECK(w.out(loud, "hello\n") == hello);
  // A run or a model without --model; not both, not neither.
  CHECK(w.out({"chat", w.d / "model", "--max-new-tokens", "12", "--quiet"}, "hello\n") == hello);
  CHECK(one_line(w.run({"chat"}), 2, "expected RUN or --model"));
  CHECK(one_line(w.run(w.words("chat", {w.d / "model"})), 2, "found both"));
  CHECK(one_line(w.run(w.words("chat", {}), "ok\n\xff\n"), 3, "standard input:2: not valid UTF-8"));
  CHECK(one_line(w.run(w.words("chat", {"--top-k", "3"})), 2, "--top-k needs --temperature"));
}

TEST_CASE("chat: an answer comes before the next turn is asked for") {
  const Talk w;
  std::array<int, 2> to{}, from{};
  REQUIRE(pipe2(to.data(), O_CLOEXEC) == 0);
  REQUIRE(pipe2(from.data(), O_CLOEXEC) == 0);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, to[0], 0);
  posix_spawn_file_actions_adddup2(&files, from[1], 1);
  std::string program = test_binary();
  std::vector<std::string> arguments = w.words("chat", {"--json"}, 3);
  std::vector<char*> pointers{program.data()};
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  pid_t child = 0;
  REQUIRE(posix_spawn(&child, program.c_str(), &files, nullptr, pointers.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&files);
  close(to[0]);
  close(from[1]);
  for (int turn = 0; turn < 2; ++turn) {
    REQUIRE(::write(to[1], "hello\n", 6) == 6);
    std::string line;
    for (char c = 0; c != '\n';) {
      REQUIRE(read(from[0], &c, 1) == 1);
      line.push_back(c);
    }
    CHECK(parse_json(line.substr(0, line.size() - 1), "out").find("content") != nullptr);
  }
  close(to[1]);
  int status = 0;
  waitpid(child, &status, 0);
  close(from[0]);
  CHECK(status == 0);
}

TEST_CASE("generate --json: text, tokens and why it ended; a stop text is not part of it") {
  const Talk w;
  const Json whole = w.generated({"--prompt", "row number"}, 20);
  const std::string text = whole.find("text")->as_string();
  CHECK(whole.find("tokens")->as_int() == 20);
  CHECK(whole.find("finish")->as_string() == "length");
  CHECK(w.out(w.words("generate", {"--prompt", "row number"}, 20)) ==
        text + (text.ends_with('\n') ? "" : "\n"));
  // The first ASCII letter or digit that the text has only once.
  size_t at = 0;
  while (at < text.size() &&
         (!std::isalnum(static_cast<unsigned char>(text[at])) || text.find(text[at]) != at)) {
    ++at;
  }
  REQUIRE(at < text.size());
  const std::string mark(1, text[at]);
  for (const std::vector<std::string>& stops :
       {std::vector<std::string>{"--stop", mark}, {"--stop", "absent", "--stop", mark}}) {
    std::vector<std::string> more{"--prompt", "row number"};
    more.insert(more.end(), stops.begin(), stops.end());
    const Json cut = w.generated(more, 20);
    CHECK(cut.find("text")->as_string() == text.substr(0, at));
    CHECK(cut.find("finish")->as_string() == "stop");
    CHECK(cut.find("tokens")->as_int() < 20);
    const std::string shown = text.substr(0, at) + (text.substr(0, at).ends_with('\n') ? "" : "\n");
    CHECK(w.out(w.words("generate", more, 20)) == shown);
  }
  // A penalty changes what a greedy model repeats.
  CHECK(w.text({"--prompt", "row number", "--repetition-penalty", "5"}, 20) != text);
}

TEST_CASE("generate --data: each row's text is what this row alone would give") {
  const Talk w;
  const JsonArray chat{message("user", "hello"), message("assistant", "yes"),
                       message("user", "and?")};
  JsonArray answered = chat;
  answered.push_back(message("assistant", "what the data say"));
  const std::string prompt = "row number 1, longer than the rows before and behind it";
  const auto line = [](const char* key, const Json& value) {
    return Json(JsonObject{{key, value}}).dump() + "\n";
  };
  std::string rows = line("prompt", "row") + "\n" + line("messages", chat) + "{\"bad\": 1}\n" +
                     line("messages", answered) + line("text", prompt);
  rows += R"({"instruction": "do", "input": "it", "output": "unread"})"
          "\n";
  rows += R"({"conversations": [{"from": "human", "value": "hello"}]})"
          "\n";
  rows += Json(JsonObject{{"prompt", chat}, {"completion", JsonArray{message("assistant", "x")}}})
              .dump() +
          "\n";
  rows += R"({"input_ids": [72, 73]})"
          "\n";
  write(w.d / "p.jsonl", rows);
  write(w.d / "one.txt", prompt);
  std::vector<std::string> more = kDrawn;
  const std::vector<std::string> files{"--data", w.d / "p.jsonl", "--data", w.d / "one.txt"};
  more.insert(more.end(), files.begin(), files.end());
  CHECK(one_line(w.run(w.words("generate", more)), 3, "p.jsonl:4: expected one of the keys"));
  more.insert(more.end(), {"--skip-bad-rows", "1"});
  const std::vector<Json> answers = w.documents(w.words("generate", more));

  const auto alone = [&](const std::string& text) {
    std::vector<std::string> own = kDrawn;
    own.insert(own.end(), {"--prompt", text});
    return w.text(own);
  };
  const std::string to_chat = w.answer(chat, kDrawn);
  CHECK(w.answer(answered, kDrawn) == to_chat);
  const std::vector<std::string> expected{alone("row"),
                                          to_chat,
                                          to_chat,
                                          alone(prompt),
                                          w.answer({message("user", "do\nit")}, kDrawn),
                                          w.answer({message("user", "hello")}, kDrawn),
                                          to_chat,
                                          "",
                                          alone(prompt)};
  const std::vector<int64_t> numbers{1, 2, 4, 5, 6, 7, 8, 9, 10};
  REQUIRE(answers.size() == expected.size());
  for (size_t i = 0; i < answers.size(); ++i) {
    INFO(i << " " << answers[i].dump());
    CHECK(answers[i].find("row")->as_int() == numbers[i]);
    CHECK(answers[i].as_object().size() == 2);
    if (i != 7) CHECK(answers[i].find("text")->as_string() == expected[i]);
  }
  const ProgramResult r = w.run(w.words("generate", {"--data", w.d / "p.jsonl", "--prompt", "x"}));
  CHECK(r.exit_code == 0);
  CHECK(r.err.find("--data has no effect beside --prompt") != std::string::npos);
  CHECK(one_line(w.run(w.words("generate", {})), 2, "--prompt, --messages and --data, found none"));
}

TEST_CASE("generate: a system message leads a chat, once, and has no effect on a text") {
  const Talk w;
  const JsonArray question{message("user", "hello")};
  const JsonArray whole{message("system", "Be brief."), message("user", "hello")};
  CHECK(w.answer(question, {"--system", "Be brief."}) == w.answer(whole));
  CHECK(w.answer(question) != w.answer(whole));
  write(w.d / "q.json", Json(whole).dump());
  CHECK(one_line(w.run(w.words("generate", {"--messages", w.d / "q.json", "--system", "x"})), 3,
                 "has a system message of its own"));
  const ProgramResult r = w.run(w.words("generate", {"--prompt", "a", "--system", "x"}));
  CHECK(r.exit_code == 0);
  CHECK(r.err.find("--system has no effect on --prompt") != std::string::npos);
}
