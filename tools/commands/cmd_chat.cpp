// hearth chat: each line of standard input is a turn, each answer goes to standard output.
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "base/error.h"
#include "commands/commands.h"
#include "commands/output.h"
#include "train/conversation.h"

namespace hearth {

namespace {

constexpr size_t kLongestTurn = size_t{16} << 20;  // as a line of data

/// The next line of standard input, as soon as it is whole; nullopt at the end.
std::optional<std::string> read_turn(const std::string& where) {
  std::string line;
  int c = 0;
  while ((c = std::getc(stdin)) != EOF && c != '\n') {
    if (line.size() == kLongestTurn) throw input_error(where + ": longer than 16 MiB");
    line.push_back(static_cast<char>(c));
  }
  if (std::ferror(stdin) != 0) throw input_error("standard input cannot be read");
  if (c == EOF && line.empty()) return std::nullopt;
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

void print_answer(Conversation& chat, std::string turn, const std::string& where, bool json) {
  if (json) {
    const Answer answer = chat.reply(std::move(turn), where, [](const std::string&) {});
    print_at_once(Json(JsonObject{{"content", answer.text}}).dump() + "\n");
    return;
  }
  const Answer answer = chat.reply(std::move(turn), where, print_at_once);
  if (!answer.text.ends_with('\n')) print_at_once("\n");
}

}  // namespace

ExitCode run_chat(const Options& options) {
  const GenerateConfig config{options, options};
  Console console(console_settings(options));
  Conversation chat(config, console);
  chat.load();
  const bool terminal = isatty(STDIN_FILENO) == 1;
  if (terminal && !options.quiet) console.note("write a line; /exit ends the chat");
  for (int64_t number = 1;; ++number) {
    if (terminal) std::fputs("> ", stderr);
    const std::string where = "standard input:" + std::to_string(number);
    std::optional<std::string> turn = read_turn(where);
    if (!turn || *turn == "/exit") break;
    if (terminal && turn->empty()) continue;
    print_answer(chat, std::move(*turn), where, options.json);
  }
  return ExitCode::done;
}

}  // namespace hearth
