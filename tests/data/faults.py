"""Faults of what reads text: tokenizers, templates, masks, rows and batches.

A fault of READ is planted in the tokenizer.json that a test reads (tests/support/faulty_files.cpp).

A fault of FAULTS is inside a function. It is one replacement in one file, where `old` occurs once. These functions call each other
within a file: nothing between them is a seam that a test could change. So scripts/planted_faults
compiles the one file with the fault and links it in front of the libraries of the built test_data.
`units` are the sources to compile if the fault is in a header."""
from collections import namedtuple

Fault = namedtuple("Fault", "name file old new units", defaults=((),))

TOKENIZER = "src/data/tokenizer/"
CHAT = "src/data/chat/"
JINJA = "src/jinja/"
ROWS = "src/data/rows/"
SAMPLES = "src/data/samples/"

Read = namedtuple("Read", "name breaks test cases section", defaults=("test_data", "*", ""))

READ = [
    Read("first-of-equal-pairs-counts", "of two merges of one pair the first counts"),
    Read("unknown-tokens-always-fused", "unknown tokens are fused without fuse_unk"),
    Read("first-scheme-always", "the prepend_scheme first is read as always"),
    Read("invert-ignored", "invert of Split is ignored"),
    Read("single-words-anywhere", "single_word of added tokens is ignored"),
    Read("white-space-of-rstrip-stays", "rstrip of added tokens is ignored"),
    Read("template-behind-only", "a template's tokens before the text come behind it"),
]

FAULTS = [
    Fault("merges-by-place-alone", TOKENIZER + "bpe_encode.cpp",
          "{ return a.rank < b.rank; }",
          "{ return a.rank != kNoRank && b.rank == kNoRank; }"),
    Fault("bytes-of-some-characters", TOKENIZER + "bpe_encode.cpp",
          "byte_fallback_ && std::all_of(",
          "byte_fallback_ && std::any_of("),
    Fault("cached-words-of-any-length", TOKENIZER + "word_cache.h",
          "return entry.length == word.size() &&",
          "return entry.length >= word.size() &&",
          units=(TOKENIZER + "bpe_encode.cpp",)),
    Fault("merged-with-previous-twice", TOKENIZER + "matcher.cpp",
          "is_match && !last_ ? extend(part)",
          "is_match ? extend(part)"),
    Fault("empty-match-behind-a-match", TOKENIZER + "matcher.h",
          "if (found->begin == found->end && found->end == last_end) {",
          "if (found->begin == found->end) {",
          units=(TOKENIZER + "matcher.cpp", TOKENIZER + "normalizers.cpp")),
    Fault("shortest-added-token", TOKENIZER + "added_tokens.cpp",
          "if (trie.ends[node] >= 0) longest = trie.ends[node], span.end = at + 1;",
          "if (trie.ends[node] >= 0 && longest < 0) longest = trie.ends[node], span.end = at + "
          "1;"),
    Fault("prefix-has-no-span", TOKENIZER + "aligned_text.cpp",
          "if (byte < change.to.end) return change.from;",
          "if (byte < change.to.end) return {change.from.begin, change.from.begin};"),
    Fault("spans-of-the-first-edit-only", TOKENIZER + "aligned_text.cpp",
          "if (!edit->empty()) span = before(*edit, span);",
          "if (edit + 1 == edits_.rend()) span = before(*edit, span);"),
    Fault("marks-in-the-order-they-come", TOKENIZER + "unicode_forms.cpp",
          "return combining_class(a) < combining_class(b);",
          "return false;"),
    Fault("half-an-interval-possessive", TOKENIZER + "oniguruma.cpp",
          "const bool again = rest().starts_with('+') ||",
          "const bool again ="),
    Fault("space-with-u0085-alone", TOKENIZER + "oniguruma.cpp",
          "\\x{85}\\x{a0}",
          "\\x{85}"),
    Fault("runs-of-bytes-cut-short", TOKENIZER + "decode_stages.cpp",
          "bytes_ += *byte;\n      return;",
          "bytes_ += *byte;\n      if (bytes_.size() == 2) finish(out);\n      return;"),
    Fault("strip-keeps-its-count", TOKENIZER + "decode_stages.cpp",
          "if (part.begins) left_ = start_, held_ = 0, begins_ = true;",
          "if (part.begins) left_ = start_ + left_, held_ = 0, begins_ = true;"),
    Fault("lstrip-blocks-ignored", JINJA + "lexer.cpp",
          "return leading_space(indent) == indent.size() ? text.substr(0, line) : text;",
          "return leading_space(indent) > indent.size() ? text.substr(0, line) : text;"),
    Fault("trim-blocks-takes-all-space", JINJA + "lexer.cpp",
          "} else if (!keep && rest_.starts_with('\\n')) {\n      advance(1);",
          "} else if (!keep && rest_.starts_with('\\n')) {\n      "
          "advance(leading_space(rest_));"),
    Fault("tojson-in-ascii", JINJA + "filters.cpp",
          "style.ascii = truth_or(bound[0], false);",
          "style.ascii = truth_or(bound[0], true);"),
    Fault("loop-last-one-early", JINJA + "objects.cpp",
          "if (name == \"last\") return Value(!look_ahead());",
          "if (name == \"last\") return Value(length() - index0_ <= 2);"),
    Fault("header-trained", CHAT + "turn_finder.cpp",
          "if (text.starts_with(*prompt)) return prompt->size();",
          "if (text.starts_with(*prompt)) return prompt->empty() ? 0 : prompt->size() - 1;"),
    Fault("end-of-turn-not-trained", CHAT + "turn_finder.cpp",
          "return span_of(*begin, with->size());",
          "return span_of(*begin, with->size() - 1);"),
    Fault("words-of-others-may-be-trained", CHAT + "mask.cpp",
          "if (words == Words::inside || (words == Words::unknown && by_piece)) {",
          "if (words == Words::inside && words == Words::unknown && by_piece) {"),
    Fault("all-generation-tags-with-last", CHAT + "mask.cpp",
          "if (span.end > turn.begin && span.begin < turn.end) add_span(trained.trained, span);",
          "if (span.end > turn.begin || span.begin < turn.end) add_span(trained.trained, span);"),
    Fault("hidden-generation-tags-believed", CHAT + "mask.cpp",
          "if (whole.generated_hidden) {",
          "if (whole.generated_hidden && whole.text.empty()) {"),
    Fault("tags-without-the-prompt-of-a-completion", CHAT + "mask.cpp",
          "within(whole.generated, trained.trained[0])",
          "within(whole.generated, {0, trained.trained[0].end})"),
    Fault("other-turns-with-the-words-of-the-last", CHAT + "turn_finder.cpp",
          "if (next != taken.end() && next->begin < end) continue;",
          "if (next != taken.end() && next->begin > text.size()) continue;"),
    Fault("end-token-twice", ROWS + "row_converter.cpp",
          "encoding.ids.back() == with.end_id();",
          "encoding.ids.back() == with.end_id() + 1;"),
    Fault("prompt-of-a-text-row-trained", ROWS + "row_converter.cpp",
          "options.train_on == TrainOn::all ? 0 : prompt.size();",
          "options.train_on == TrainOn::all ? prompt.size() : 0;"),
    Fault("row-lost-at-the-end-of-a-window", SAMPLES + "epoch_plan.cpp",
          "pack_window(set, seq_len, begin, i + 1, plan);",
          "pack_window(set, seq_len, begin, i + 1 == plan.rows.size() ? i + 1 : i, plan);"),
    Fault("reuse-random-counter", SAMPLES + "epoch_plan.cpp",
          "RandomSite::shuffle, static_cast<uint32_t>(epoch), draws",
          "RandomSite::shuffle, 0 * static_cast<uint32_t>(epoch), draws"),
    Fault("cursor-one-too-far-behind-an-epoch", SAMPLES + "sampler.cpp",
          "cursor_ = {cursor_.epoch + 1, 0};",
          "cursor_ = {cursor_.epoch + 1, current.sequences() > 1 ? 1 : 0};"),
    Fault("same-fraction-in-each-epoch", SAMPLES + "row_set.cpp",
          "RandomSite::shuffle, static_cast<uint32_t>(epoch),",
          "RandomSite::shuffle, 0 * static_cast<uint32_t>(epoch),"),
    Fault("key-without-the-template", SAMPLES + "row_key.cpp",
          "hasher.update_field(template_identity({model, chat_template, template_date, "
          "follow_links}));",
          "static_cast<void>(template_identity({model, chat_template, template_date, "
          "follow_links}));"),
    Fault("words-of-an-entry-not-checked", SAMPLES + "store_file.cpp",
          "if (words.digest() != footer.words_digest || ",
          "if ("),
    Fault("bad-rows-counted-for-each-file-alone", SAMPLES + "file_tokens.cpp",
          "FileTokens FileTokenizer::read(const std::string& path) {\n",
          "FileTokens FileTokenizer::read(const std::string& path) {\n  bad_ = 0;\n"),
    Fault("newest-entry-goes-first", SAMPLES + "row_cache.cpp",
          "std::tie(a.used, a.path) < std::tie(b.used, b.path)",
          "std::tie(a.used, a.path) > std::tie(b.used, b.path)"),
    Fault("rows-for-evaluation-trained-on", SAMPLES + "run_rows.cpp",
          "(is_held ? held : train).push_back(static_cast<uint32_t>(row));",
          "if (is_held) held.push_back(static_cast<uint32_t>(row));\n      "
          "train.push_back(static_cast<uint32_t>(row));"),
    Fault("rows-of-a-batch-change-places", SAMPLES + "file_tokens.cpp",
          "    converted = std::move(current);\n",
          "    std::swap(converted, current);\n    if (converted.raw.size() > 1) "
          "std::swap(converted.rows.front(), converted.rows.back());\n"),
    Fault("first-label-of-a-cut-row-counts", SAMPLES + "row_words.cpp",
          "std::min({begin, done, limit})",
          "std::min({done - n, done, limit})"),
    Fault("temporary-file-of-a-dead-process-stays", SAMPLES + "row_cache.cpp",
          "        remove_file(path);\n      } catch (const Error&) {  // its maker",
          "        static_cast<void>(lock);\n      } catch (const Error&) {  // its maker"),
]
