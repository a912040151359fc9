// A template, a line "----", and messages as JSON: refused with an input error, or rendered twice to
// the same text, with spans that lie in it, in order.
#include <cstdlib>

#include "base/error.h"
#include "data/chat/mask.h"
#include "jinja/jinja.h"
#include "support/bounded.h"
#include "support/json_mutator.h"

namespace {

using namespace hearth;

void check(bool condition) {
  if (!condition) std::abort();
}

void check_spans(const std::vector<TextSpan>& spans, size_t size) {
  size_t last = 0;
  for (const TextSpan& span : spans) {
    check(last <= span.begin && span.begin < span.end && span.end <= size);
    last = span.end;
  }
}

// A small share of the steps that a chat may take: a case has to end within seconds.
void render_alone(const std::string& source, const Json& messages) {
  const jinja::Template parsed(source, "fuzz");
  jinja::Limits limits;
  limits.steps = 300'000;
  limits.text_bytes = 32 << 20;
  jinja::Value value;
  try {
    value = jinja::Value::from_json(messages);
  } catch (const jinja::TemplateError&) {  // an integer that is no int64
    return;
  }
  parsed.render({{"messages", value}}, "2026-01-31", "row", limits);
}

void render_chat(const std::string& source, const Json& messages) {
  const Chat chat = read_chat(messages, "row");
  const ChatTemplate with(source, "fuzz", JsonObject{{"bos_token", "<s>"}}, "2026-01-31");
  const RenderedChat first = with.render(chat.messages, Json(), false, "row");
  check(with.render(chat.messages, Json(), false, "row").text == first.text);
  for (const TrainOn on : {TrainOn::assistant, TrainOn::last}) {
    const TrainedChat trained = render_trained(with, chat, on, "row");
    check_spans(trained.trained, trained.text.size());
  }
}

// Fields of the messages; the template before them stays.
std::string change_messages(std::string_view input, uint32_t seed) {
  const size_t cut = input.find("\n----\n");
  if (cut == input.npos) return std::string(input);
  return std::string(input.substr(0, cut + 6)) + test::mutate_json(input.substr(cut + 6), seed);
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return test::mutate_input(data, size, most, seed, change_messages);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t cut = input.find("\n----\n");
  const std::string source(input.substr(0, cut));
  try {
    const Json messages =
        cut == std::string_view::npos
            ? parse_json(R"([{"role": "user", "content": "Hi"}, {"role": "assistant",
                             "content": "Ho", "reasoning_content": "R"}])",
                         "")
            : parse_json(input.substr(cut + 6), "messages");
    const test::Bounded bound(size, {.bytes = 128 << 20, .seconds = 4});  // by its own limits
    render_alone(source, messages);
    render_chat(source, messages);
  } catch (const Error& error) {
    check(error.code() == ExitCode::input);
  }
  return 0;
}
