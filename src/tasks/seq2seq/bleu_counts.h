#pragma once

#include "quatrain/data/line_pairs.h"
#include "quatrain/scores/bleu.h"
#include "quatrain/train/task.h"

/// BLEU by its counts, as a run keeps them.
namespace quatrain::tasks {

/// How BLEU cuts texts of a form into words.
scores::BleuTokenizer bleu_tokenizer(data::TextForm form);
/// No examples yet.
train::ExampleCounts bleu_columns();
/// The values of an example.
std::vector<int64_t> bleu_values(const scores::BleuCounts& counts);
/// BLEU of the sums of such values.
double bleu_of(const std::vector<int64_t>& sums);

}  // namespace quatrain::tasks
