// Chats as text: the Jinja template of a model, and what it writes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "data/tokenizer/tokenizer.h"

namespace hearth {

struct TemplateOptions {
  std::string model;          // directory of tokenizer_config.json
  std::string choice;         // --chat-template: "chatml", a name of the model's list, a file
  std::string date;           // --template-date, YYYY-MM-DD; empty: today
  bool follow_links = false;  // of the model directory
  std::string adapter = {};   // directory whose templates come before the model's; empty: none
};

/// What a template wrote.
struct RenderedChat {
  std::string text;
  /// The insides of {% generation %} blocks, in order. `generated_hidden`: one of them wrote into a
  /// macro or a variable, whose place in the text is not known.
  std::vector<TextSpan> generated;
  bool generated_hidden = false;
  /// For every message the one piece of the text that the template's loop over the messages wrote
  /// in its turn; empty where there is none or where it lies in several pieces.
  std::vector<TextSpan> turns;
};

/// A chat as templates see it: made once for many renderings of its beginnings. For one thread.
class ChatValues {
 public:
  /// `tools`: null for none. An input error that starts with `where` for what templates cannot
  /// hold (values nested too deep).
  ChatValues(std::span<const Json> messages, const Json& tools, const std::string& where);
  size_t messages() const;

 private:
  friend class ChatTemplate;
  struct Parts;
  std::shared_ptr<const Parts> parts_;
};

/// The template of a model, or several of them by name. Immutable: threads may share it.
///
/// Renders byte for byte what transformers' apply_chat_template does (members of a message that are
/// null are left out there as well). Templates are hostile: no files, bounded steps, depth and
/// output. What raises, is not understood or runs into a limit is an input error that starts with
/// `where` and names template and line.
class ChatTemplate {
 public:
  /// Finds it: the choice; else, in the adapter's directory and then in the model's, chat_template.jinja and additional_chat_templates/*.jinja; else
  /// chat_template of tokenizer_config.json, a text or a list of named ones. Input error without
  /// any, usage error for an unknown choice.
  explicit ChatTemplate(const TemplateOptions& options);
  /// One template from its text; `special_tokens` is an object ({"bos_token": "<s>", ...}).
  ChatTemplate(const std::string& source, const std::string& name, const Json& special_tokens,
               const std::string& date);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  /// `tools`: null for none. With tools, the template named tool_use is taken where there is one,
  /// else `default`. `steps`: what this and further renderings of a row may take together; lowered
  /// by what this one took.
  RenderedChat render(std::span<const Json> messages, const Json& tools, bool add_generation_prompt,
                      const std::string& where, int64_t* steps = nullptr) const;
  /// The first `count` messages of a chat.
  RenderedChat render(const ChatValues& chat, size_t count, bool add_generation_prompt,
                      const std::string& where, int64_t* steps = nullptr) const;

  /// Whether the template for such rows marks what the model writes by {% generation %}.
  bool marks_generation(const Json& tools) const;

  /// All that the text depends on beside the chat (templates, special tokens, and the date where a
  /// template asks for it): what a cache of rendered rows is keyed by.
  std::string identity() const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace hearth
