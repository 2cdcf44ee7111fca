#pragma once

#include "quatrain/scores/bleu.h"
#include "quatrain/train/task.h"

/// BLEU by its counts, as a run keeps them.
namespace quatrain::tasks {

/// No examples yet.
train::ExampleCounts bleu_columns();
/// The values of an example.
std::vector<int64_t> bleu_values(const scores::BleuCounts& counts);
/// BLEU of the sums of such values.
double bleu_of(const std::vector<int64_t>& sums);

}  // namespace quatrain::tasks
