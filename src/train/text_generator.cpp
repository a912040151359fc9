#include "train/text_generator.h"

#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "base/error_format.h"
#include "base/setting.h"
#include "budget/plan_fit.h"
#include "data/tokenizer/stream_decoder.h"
#include "train/sampling.h"
#include "train/stop_texts.h"

namespace hearth {

namespace {

/// Prompts are taken in pieces of this many tokens when there is a cache.
constexpr int64_t kPromptPiece = 256;
/// Tokens of the first turns of a chat.
constexpr int64_t kFirstPrompts = 1024;

}  // namespace

TextGenerator::TextGenerator(GenerateConfig config, Reporter& reporter)
    : config_(std::move(config)),
      reporter_(reporter),
      opened_(open_model(config_)),
      tokenizer_(config_.model, config_.follow_links),
      ends_(opened_->spec.eos_ids),
      logits_(static_cast<size_t>(opened_->spec.vocabulary)) {
  if (tokenizer_.has_end_token()) ends_.push_back(tokenizer_.end_id());
}

void TextGenerator::check_prompt(std::span<const int32_t> ids, const std::string& where) const {
  if (ids.empty()) throw usage_error("{}: has no tokens; give at least one", where);
  for (const int32_t id : ids) {
    if (id < opened_->spec.vocabulary) continue;
    throw input_error(config_.model + ": token id " + std::to_string(id) +
                      " of the tokenizer is outside the model's vocabulary of " +
                      std::to_string(opened_->spec.vocabulary));
  }
}

void TextGenerator::warn_beyond(const std::string& what) {
  if (warned_) return;
  warned_ = true;
  reporter_.warn(what + ": the model was made for " + std::to_string(opened_->spec.max_positions) +
                 " positions (max_position_embeddings); expect poor text beyond them");
}

void TextGenerator::make_room(int64_t prompt_tokens) {
  const int64_t needed = prompt_tokens + config_.max_new_tokens;
  if (needed <= room_) return;
  // A chat grows: twice the room, so that weights are read a few times at most.
  const int64_t doubled = std::min(2 * room_, opened_->spec.max_positions);
  session_.reset();
  model_.reset();
  cached_.clear();
  PlanRequest request;
  request.longest = std::max(needed, doubled);
  request.cache_rows = request.longest;
  request.decode_tokens =
      config_.kv_cache ? std::min(request.longest, kPromptPiece) : request.longest;
  model_.emplace(place_model(untrained_model(opened_, config_), request));
  require_fit(*model_, request);
  if (room_ == 0) log_lines(opened_->said);  // the first time
  session_ = std::make_unique<Session>(*model_);
  session_->read_weights();
  room_ = request.longest;
  decode_tokens_ = request.decode_tokens;
}

void TextGenerator::make_first_room() {
  make_room(std::min(kFirstPrompts, opened_->spec.max_positions));
}

std::span<float> TextGenerator::logits_after(std::span<const int32_t> ids) {
  // The last id is computed in any case: its logits are asked for.
  const auto same = std::mismatch(cached_.begin(), cached_.end(), ids.begin(), ids.end() - 1);
  cached_.resize(config_.kv_cache ? static_cast<size_t>(same.first - cached_.begin()) : 0);
  const float* logits = nullptr;
  while (cached_.size() < ids.size()) {
    const std::span<const int32_t> rest = ids.subspan(cached_.size());
    const auto piece = rest.first(std::min(rest.size(), static_cast<size_t>(decode_tokens_)));
    logits = session_->decode(piece, std::ssize(cached_));
    cached_.insert(cached_.end(), piece.begin(), piece.end());
  }
  std::copy(logits, logits + logits_.size(), logits_.begin());
  return logits_;
}

Answer TextGenerator::answer(std::span<const int32_t> prompt, const EmitText& emit) {
  const int64_t made_for = opened_->spec.max_positions;
  if (std::ssize(prompt) > made_for) {
    warn_beyond("the prompt has " + std::to_string(prompt.size()) + " tokens");
  }
  make_room(std::ssize(prompt));
  std::vector<int32_t> ids(prompt.begin(), prompt.end());
  const Sampling sampling{config_.temperature, config_.sample_top_k, config_.top_p, config_.min_p};
  const Random random(config_.seed, RandomSite::sample);
  StreamDecoder decoder(tokenizer_, true);
  StopTexts stops(config_.stop);
  Answer answer;
  const auto give = [&](const std::string& piece) {
    answer.text += piece;
    if (!piece.empty()) emit(piece);
  };
  for (; answer.tokens < config_.max_new_tokens && !stops.found(); ++answer.tokens) {
    const std::span<float> logits = logits_after(ids);
    if (!std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); })) {
      throw numeric_error("generate: the logits of token " + std::to_string(answer.tokens + 1) +
                          " are not finite");
    }
    penalize_repetition(logits, ids, config_.repetition_penalty);
    const double draw = random.uniform(static_cast<uint64_t>(answer.tokens));
    const int32_t id = next_token(logits, sampling, draw);
    answer.ended = std::find(ends_.begin(), ends_.end(), id) != ends_.end();
    if (answer.ended) break;
    ids.push_back(id);
    give(stops.push(decoder.push(id)));
  }
  if (!stops.found()) give(stops.push(decoder.finish()));
  answer.ended = answer.ended || stops.found();
  give(stops.finish());
  if (std::ssize(ids) > made_for) {
    warn_beyond("prompt and answer have " + std::to_string(ids.size()) + " tokens");
  }
  return answer;
}

}  // namespace hearth
