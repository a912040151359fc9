#include "train/conversation.h"

#include "base/error_format.h"
#include "base/utf8.h"

namespace hearth {

namespace {

Json message(const char* role, std::string content) {
  return JsonObject{{"role", role}, {"content", std::move(content)}};
}

}  // namespace

Conversation::Conversation(const GenerateConfig& config, Reporter& reporter)
    : config_(config), generator_(config, reporter), prompts_(config_, generator_.tokenizer()) {}

void Conversation::load() { generator_.make_first_room(); }

Answer Conversation::reply(std::string turn, const std::string& where, const EmitText& emit) {
  if (find_invalid_utf8(turn) != std::string::npos) {
    throw input_error("{}: not valid UTF-8", where);
  }
  chat_.messages.push_back(message("user", std::move(turn)));
  const std::vector<int32_t> ids = prompts_.of_chat(chat_, where);
  generator_.check_prompt(ids, where);
  Answer answer = generator_.answer(ids, emit);
  chat_.messages.push_back(message("assistant", answer.text));
  return answer;
}

}  // namespace hearth
