// A chat with a model: turns of the user, answered one by one.
#pragma once

#include <string>

#include "data/chat/messages.h"
#include "setup/config.h"
#include "setup/reporter.h"
#include "train/prompts.h"
#include "train/text_generator.h"

namespace hearth {

class Conversation {
 public:
  /// Opens the model, and renders nothing yet. `reporter` must outlive this.
  Conversation(const GenerateConfig& config, Reporter& reporter);
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  /// Reads the weights, with room for a first turn.
  void load();

  /// Answers the next turn of the user: what `generate` answers to the same messages. The turn and
  /// its answer join the history. Input error for a turn that is not valid UTF-8 (`where` names it),
  /// and for a history that the template refuses.
  Answer reply(std::string turn, const std::string& where, const EmitText& emit);

 private:
  GenerateConfig config_;
  TextGenerator generator_;
  PromptMaker prompts_;
  Chat chat_;
};

}  // namespace hearth
