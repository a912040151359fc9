#include "data/chat/mask.h"

#include <algorithm>

#include "base/error.h"
#include "data/json_fields.h"

namespace hearth {

TrainedChat render_trained(const ChatTemplate& chat_template, const Chat& chat, TrainOn train_on,
                           const std::string& where) {
  if (find_assistant(chat.messages) == chat.messages.size()) {
    throw input_error(where + ": messages: no turn of the assistant");
  }
  RenderedChat rendered = chat_template.render(chat.messages, chat.tools, false, where);
  TrainedChat trained;
  const auto end = static_cast<uint32_t>(rendered.text.size());
  if (train_on == TrainOn::all) {
    trained.trained.push_back({0, end});
  } else {
    for (size_t i = find_assistant(chat.messages); i < chat.messages.size();
         i = find_assistant(chat.messages, i + 1)) {
      const auto header = static_cast<uint32_t>(std::string_view("<|im_start|>assistant\n").size());
      trained.trained.push_back({rendered.turns[i].begin + header, rendered.turns[i].end});
    }
    if (train_on == TrainOn::last || train_on == TrainOn::completion) {
      trained.trained.erase(trained.trained.begin(), trained.trained.end() - 1);
    }
  }
  trained.text = std::move(rendered.text);
  return trained;
}

bool ends_turn(std::span<const int32_t> ids, std::span<const int32_t> labels,
               std::span<const int32_t> ends, const Tokenizer& tokenizer) {
  size_t i = labels.size();
  while (i > 0 && labels[i - 1] < 0) --i;
  if (i == 0) return true;
  for (; i > 0; --i) {
    if (std::find(ends.begin(), ends.end(), ids[i - 1]) != ends.end()) return true;
    const std::string text = tokenizer.decode(ids.subspan(i - 1, 1));
    if (text.find_first_not_of(" \t\r\n") != std::string::npos) return false;
  }
  return false;
}

}  // namespace hearth
