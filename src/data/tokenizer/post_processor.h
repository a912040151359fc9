// The post-processor of tokenizer.json: ids before and behind those of a text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace hearth {

/// TemplateProcessing (its `single`), BertProcessing, RobertaProcessing, ByteLevel (which adds
/// nothing), and Sequences of them; null adds nothing.
struct PostProcessor {
  std::vector<int32_t> before, behind;

  /// From the value of `post_processor`; `source` names the file in messages. Input error for a
  /// component or a key that is not known, and a template that has the text not once.
  PostProcessor(const Json& description, const std::string& source);

 private:
  void add(const Json& description, const std::string& where);
  void add_template(const Json& description, const std::string& where);
  void add_pair(const Json& description, const std::string& where);
};

}  // namespace hearth
