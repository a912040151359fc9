// hearth generate: text from a prompt or a chat, printed as it comes.
#include "tools/commands.h"
#include "tools/output.h"
#include "train/trainer.h"

namespace hearth {

ExitCode run_generate(const Options& options) {
  GenerateConfig config;
  static_cast<RunConfig&>(config) = options;
  config.prompt = options.prompt;
  config.messages_file = options.messages_file;
  config.max_new_tokens = options.max_new_tokens;
  config.temperature = options.temperature;
  config.top_p = options.top_p;
  config.kv_cache = options.kv_cache;

  Console console(console_settings(options));
  const std::string text = generate(config, console, [](const std::string& piece) {
    print(piece);
    flush_stdout();
  });
  if (!text.ends_with('\n')) print("\n");
  return ExitCode::done;
}

}  // namespace hearth
