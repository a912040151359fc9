// hearth generate: text from a prompt or a chat, printed as it comes, or answers to rows.
#include "commands/commands.h"
#include "commands/output.h"
#include "train/generate.h"

namespace hearth {

namespace {

Json document(const Answer& answer) {
  Json json;
  json["text"] = answer.text;
  json["tokens"] = answer.tokens;
  json["finish"] = answer.ended ? "stop" : "length";
  return json;
}

}  // namespace

ExitCode run_generate(const Options& options) {
  const GenerateConfig config{options, options};
  Console console(console_settings(options));
  const bool rows = config.prompt.empty() && config.messages_file.empty();
  if (!rows && !config.data.empty()) {
    console.warn("--data has no effect beside --prompt or --messages");
  }
  if (rows) {
    generate_rows(config, console, [](int64_t row, const Answer& answer) {
      print_at_once(Json(JsonObject{{"row", row}, {"text", answer.text}}).dump() + "\n");
    });
  } else if (options.json) {
    print_json(document(generate(config, console, [](const std::string&) {})));
  } else {
    const Answer answer = generate(config, console, print_at_once);
    if (!answer.text.ends_with('\n')) print("\n");
  }
  return ExitCode::done;
}

}  // namespace hearth
