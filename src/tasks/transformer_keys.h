#pragma once

#include "quatrain/nn/encoder.h"
#include "quatrain/tasks/recipe.h"

/// The keys of [model] that every Transformer has, and the rules that join them.
namespace quatrain::tasks {

/// What they set.
struct TransformerSettings {
  nn::MapSettings& map;
  nn::BlockSettings& block;
  nn::HeadSettings& heads;
  nn::HiddenSettings& hidden;
  nn::DropSettings& drop;
};

/// Those of a model's options.
template <class Options>
TransformerSettings settings_of(Options& options) {
  return {options.map_settings, options.block_settings, options.head_settings, options.hidden_settings,
          options.drop_settings};
}

/// The rule of model.attention, of any network that attends.
void check_attention(const Recipe& recipe, nn::AttentionKind attention, const nn::AlgebraSpec& algebra,
                     nn::HeadSplit split = nn::HeadSplit::inside);

void describe_transformer(train::Keys& keys, const TransformerSettings& t);
void check_transformer(const Recipe& recipe, const nn::MapSettings& map, const nn::BlockSettings& block,
                       const nn::HeadSettings& heads);
template <class Options>
void check_transformer(const Recipe& recipe, const Options& options) {
  check_transformer(recipe, options.map_settings, options.block_settings, options.head_settings);
}

}  // namespace quatrain::tasks
