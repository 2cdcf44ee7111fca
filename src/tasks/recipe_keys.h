#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quatrain/tasks/recipe.h"

namespace quatrain::tasks {

/// The table that a twin's own keys are in.
inline constexpr std::string_view kTwinTable = "model.";

/// The keys that every kind has: the kind itself, [train], [compare].
void describe_shared(Recipe& recipe, train::Keys& keys);

/// Gives several keys their values, one after the other.
void apply(Recipe& recipe, const std::vector<Setting>& settings);

/// True of keys that change what a trained run answers, or how fast; the weights were trained with the
/// others.
bool acts_on_answers(const train::Key& key);

/// Refuses settings of keys that say nothing in the recipe, nor in any of its twins.
void check_used(const Recipe& recipe, const std::vector<Setting>& settings);

/// The multiples of a number around a value, for messages: "508, 512".
std::string nearest_multiples(int64_t value, int64_t of);

}  // namespace quatrain::tasks
