// `generate`: text from a prompt or a chat, token by token, with a key-value cache or without.
#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "base/error_format.h"
#include "base/file_ops.h"
#include "base/random.h"
#include "base/setting.h"
#include "base/utf8.h"
#include "budget/plan_fit.h"
#include "data/tokenizer/stream_decoder.h"
#include "data/tokenizer/tokenizer.h"
#include "setup/row_requests.h"
#include "train/generate.h"
#include "train/sampling.h"
#include "train/session.h"

namespace hearth {

namespace {

/// Prompts are taken in pieces of this many tokens when there is a cache.
constexpr int64_t kPromptPiece = 256;

std::string prompt_text(const GenerateConfig& config) {
  if (config.messages_file.empty()) return config.prompt;
  const ChatTemplate chat_template(template_options(config));
  const Json file =
      parse_json(read_file(config.messages_file, uint64_t{64} << 20), config.messages_file);
  const Chat chat = read_chat(file, config.messages_file);
  return chat_template.render(chat.messages, chat.tools, true, config.messages_file).text;
}

}  // namespace

std::string generate(const GenerateConfig& config, Reporter& reporter,
                     const std::function<void(const std::string&)>& emit) {
  const std::shared_ptr<const OpenedModel> opened = open_model(config);
  const Tokenizer tokenizer(config.model, config.follow_links);
  if (config.messages_file.empty() && !config.template_args.empty()) {
    reporter.warn(spelled(Setting::template_args) + " has no effect on " +
                  spelled(Setting::prompt) + ", which no template renders");
  }
  const std::string prompt = prompt_text(config);
  if (find_invalid_utf8(prompt) != std::string::npos)
    throw input_error("{}: not valid UTF-8", spelled(Setting::prompt));
  std::vector<int32_t> ids =
      tokenizer.encode(prompt, {.add_special = config.messages_file.empty()}).ids;
  if (ids.empty())
    throw usage_error("{}: has no tokens; give at least one", spelled(Setting::prompt));
  for (const int32_t id : ids) {
    if (id >= opened->spec.vocabulary) {
      throw input_error(config.model + ": token id " + std::to_string(id) +
                        " of the tokenizer is outside the model's vocabulary of " +
                        std::to_string(opened->spec.vocabulary));
    }
  }
  const auto prompt_tokens = static_cast<int64_t>(ids.size());
  const int64_t longest = prompt_tokens + config.max_new_tokens;
  const auto warn_beyond = [&](const std::string& what) {
    reporter.warn(what + ": the model was made for " + std::to_string(opened->spec.max_positions) +
                  " positions (max_position_embeddings); expect poor text beyond them");
  };
  const bool fits = prompt_tokens <= opened->spec.max_positions;
  if (!fits) warn_beyond("the prompt has " + std::to_string(prompt_tokens) + " tokens");

  PlanRequest request;
  request.longest = longest;
  request.cache_rows = longest;
  request.decode_tokens = config.kv_cache ? std::min(longest, kPromptPiece) : longest;
  const PlacedModel model = place_model(untrained_model(opened, config), request);
  require_fit(model, request);
  Session session(model);
  session.read_weights();
  reporter.note("the prompt has " + counted(prompt_tokens, "token") + "; generating up to " +
                std::to_string(config.max_new_tokens));

  std::vector<int64_t> ends = opened->spec.eos_ids;
  if (tokenizer.has_end_token()) ends.push_back(tokenizer.end_id());
  const Random random(config.seed, RandomSite::sample);
  StreamDecoder decoder(tokenizer, true);
  std::string text;
  const auto give = [&](const std::string& piece) {
    text += piece;
    if (!piece.empty()) emit(piece);
  };
  int64_t past = 0;  // tokens in the cache
  for (int64_t i = 0; i < config.max_new_tokens; ++i) {
    const std::span<const int32_t> all(ids);
    if (!config.kv_cache) past = 0;
    const float* logits = nullptr;
    while (past < static_cast<int64_t>(ids.size())) {
      const int64_t n =
          std::min<int64_t>(static_cast<int64_t>(ids.size()) - past, request.decode_tokens);
      logits = session.decode(all.subspan(static_cast<size_t>(past), static_cast<size_t>(n)), past);
      past += n;
    }
    if (!std::all_of(logits, logits + opened->spec.vocabulary,
                     [](float logit) { return std::isfinite(logit); })) {
      throw numeric_error("generate: the logits of token " + std::to_string(i + 1) +
                          " are not finite");
    }
    const int32_t id =
        next_token({logits, static_cast<size_t>(opened->spec.vocabulary)}, config.temperature,
                   config.top_p, random.uniform(static_cast<uint64_t>(i)));
    if (std::find(ends.begin(), ends.end(), id) != ends.end()) break;
    ids.push_back(id);
    give(decoder.push(id));
  }
  give(decoder.finish());
  if (fits && std::ssize(ids) > opened->spec.max_positions) {
    warn_beyond("prompt and answer have " + std::to_string(ids.size()) + " tokens");
  }
  return text;
}

}  // namespace hearth
