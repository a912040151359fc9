// The stages of decoders.cpp, each as the official library's component works on a list of tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/tokenizer/decoders.h"
#include "data/tokenizer/matcher.h"
#include "data/tokenizer/text_room.h"

namespace hearth {

/// Puts a space between tokens: what the official library does without a decoder.
std::unique_ptr<DecodeStage> join_stage();
/// The bytes of the alphabet that all tokens together are, U+FFFD for what is no UTF-8.
std::unique_ptr<DecodeStage> byte_level_stage();
/// Runs of tokens <0xNN> are bytes; a run that is no UTF-8 becomes one U+FFFD a byte.
std::unique_ptr<DecodeStage> byte_fallback_stage();
std::unique_ptr<DecodeStage> fuse_stage();
/// The mark is a space, in the first token none where a prefix was added.
std::unique_ptr<DecodeStage> metaspace_stage(const std::string& mark, bool prefixed);
/// `matcher` and `room`, which bounds what it makes of the tokens, must outlive the stage.
std::unique_ptr<DecodeStage> replace_stage(const Matcher& matcher, const std::string& content,
                                           TextRoom& room);
/// Takes away up to `start` and `stop` characters `content` at the ends of each token.
std::unique_ptr<DecodeStage> strip_stage(const std::string& content, uint32_t start, uint32_t stop);
/// A suffix ends a word: a space, none behind the last token. `room` as above.
std::unique_ptr<DecodeStage> suffix_stage(const std::string& suffix, TextRoom& room);

}  // namespace hearth
