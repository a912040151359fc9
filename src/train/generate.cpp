// `generate`: text from a prompt, a chat or the rows of a file.
#include "train/generate.h"

#include <algorithm>

#include "base/counted.h"
#include "base/error.h"
#include "base/file_ops.h"
#include "base/setting.h"
#include "data/rows/row_intake.h"
#include "data/samples/data_files.h"
#include "setup/row_requests.h"
#include "train/prompts.h"

namespace hearth {

namespace {

/// Settings of chats have no effect on a text, which no template renders.
void warn_of_chat_settings(const GenerateConfig& config, Setting text, Reporter& reporter) {
  const auto warn = [&](bool given, Setting setting) {
    if (!given) return;
    reporter.warn(spelled(setting) + " has no effect on " + spelled(text) +
                  ", which no template renders");
  };
  warn(!config.template_args.empty(), Setting::template_args);
  warn(!config.system.empty(), Setting::system);
}

struct NumberedPrompt {
  int64_t row = 0;
  std::vector<int32_t> ids;
};

std::vector<NumberedPrompt> prompts_of_rows(const GenerateConfig& config,
                                            const TextGenerator& generator, Reporter& reporter) {
  PromptMaker prompts(config, generator.tokenizer());
  const RowOptions options = row_options(config);
  RawRowSource rows(paths_of(find_data_files(config.data, spelled(Setting::data), false)),
                    config.max_samples);
  std::vector<NumberedPrompt> made;
  RawRow row;
  int64_t bad = 0;
  for (int64_t number = 1; rows.next(row); ++number) {
    try {
      made.push_back({number, prompts.of_row(row)});
      generator.check_prompt(made.back().ids, row.where());
    } catch (const BadRow& error) {
      pass_over_bad_row(options, bad, error.what());
    }
  }
  if (made.empty()) require_trained_rows({}, config.data);
  if (prompts.had_text()) warn_of_chat_settings(config, Setting::data, reporter);
  return made;
}

}  // namespace

Answer generate(const GenerateConfig& config, Reporter& reporter, const EmitText& emit) {
  TextGenerator generator(config, reporter);
  PromptMaker prompts(config, generator.tokenizer());
  const bool chat = !config.messages_file.empty();
  std::vector<int32_t> ids;
  if (chat) {
    const Json file =
        parse_json(read_file(config.messages_file, uint64_t{64} << 20), config.messages_file);
    ids = prompts.of_chat(read_chat(file, config.messages_file), config.messages_file);
  } else {
    warn_of_chat_settings(config, Setting::prompt, reporter);
    ids = prompts.of_text(config.prompt, spelled(Setting::prompt));
  }
  generator.check_prompt(ids, spelled(Setting::prompt));
  generator.make_room(std::ssize(ids));
  reporter.note("the prompt has " + counted(std::ssize(ids), "token") + "; generating up to " +
                std::to_string(config.max_new_tokens));
  return generator.answer(ids, emit);
}

void generate_rows(const GenerateConfig& config, Reporter& reporter,
                   const std::function<void(int64_t row, const Answer&)>& emit) {
  TextGenerator generator(config, reporter);
  const std::vector<NumberedPrompt> prompts = prompts_of_rows(config, generator, reporter);
  int64_t longest = 0;
  for (const NumberedPrompt& prompt : prompts) longest = std::max(longest, std::ssize(prompt.ids));
  generator.make_room(longest);
  reporter.note(counted(std::ssize(prompts), "row") + "; generating up to " +
                std::to_string(config.max_new_tokens) + " tokens for each");
  for (const NumberedPrompt& prompt : prompts) {
    emit(prompt.row, generator.answer(prompt.ids, [](const std::string&) {}));
  }
}

}  // namespace hearth
