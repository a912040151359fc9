#include "study/study_shape.h"

#include <algorithm>

#include "model/family.h"

namespace hearth {

const std::vector<StudyShape>& study_shapes() {
  static const std::vector<StudyShape> shapes{
      {"S-8", 1024, 4096, 8}, {"S-16", 1024, 4096, 16}, {"S-64", 1024, 4096, 64},
      {"M-8", 2048, 8192, 8}, {"M-16", 2048, 8192, 16}, {"L-8", 4096, 14336, 8},
  };
  return shapes;
}

const StudyShape* find_study_shape(std::string_view name) {
  const auto found = std::ranges::find(study_shapes(), name, &StudyShape::name);
  return found == study_shapes().end() ? nullptr : &*found;
}

StudyModel study_model(const StudyShape& shape) {
  constexpr int64_t kHeads = 32, kVocabulary = 256;
  const Json config = JsonObject{{"model_type", "mixtral"},
                                 {"hidden_size", shape.hidden},
                                 {"intermediate_size", (2 * shape.width + 1) / 3},
                                 {"num_hidden_layers", shape.layers},
                                 {"num_attention_heads", kHeads},
                                 {"num_key_value_heads", kHeads},
                                 {"num_local_experts", shape.experts},
                                 {"num_experts_per_tok", kStudyTopK},
                                 {"vocab_size", kVocabulary},
                                 {"max_position_embeddings", kStudySequence},
                                 {"rms_norm_eps", 1e-5},
                                 {"rope_theta", 1e4},
                                 {"tie_word_embeddings", false}};
  const Family& family = find_family("mixtral");
  StudyModel model;
  model.spec = family.read_config(config, "shape " + shape.name);
  model.spec.aux_loss = 0;
  model.table = family.make_table(model.spec);
  for (Tensor& tensor : model.table.tensors()) tensor.trainable = true;
  return model;
}

}  // namespace hearth
