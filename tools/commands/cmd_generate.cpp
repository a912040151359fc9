// hearth generate: text from a prompt or a chat, printed as it comes.
#include "commands/commands.h"
#include "commands/output.h"
#include "train/generate.h"

namespace hearth {

ExitCode run_generate(const Options& options) {
  const GenerateConfig config{options, options};
  Console console(console_settings(options));
  const std::string text = generate(config, console, [](const std::string& piece) {
    print(piece);
    flush_stdout();
  });
  if (!text.ends_with('\n')) print("\n");
  return ExitCode::done;
}

}  // namespace hearth
