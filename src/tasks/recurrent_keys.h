#pragma once

#include "quatrain/models/recurrent_network.h"
#include "quatrain/tasks/recipe.h"

/// The keys of [model] that every recurrent network has, and the rules that join them.
namespace quatrain::tasks {

void describe_recurrent(train::Keys& keys, models::RecurrentNetworkOptions& model);
/// bidirectional, share_directions.
void describe_directions(train::Keys& keys, models::RecurrentNetworkOptions& model);
void check_recurrent(const Recipe& recipe, const models::RecurrentNetworkOptions& model);

}  // namespace quatrain::tasks
