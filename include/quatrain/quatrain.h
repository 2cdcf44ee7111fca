#pragma once

/// Everything that the library `quatrain` offers: algebras, operators, layers, weights in files, models.
/// Data, scores and training are a library of their own (quatrain::training), under quatrain/data,
/// quatrain/scores and quatrain/train.
#include "quatrain/algebra.h"
#include "quatrain/conv_ops.h"
#include "quatrain/models/ctranslate2.h"
#include "quatrain/models/generate.h"
#include "quatrain/models/language_model.h"
#include "quatrain/models/language_model_decoder.h"
#include "quatrain/models/pair_attention.h"
#include "quatrain/models/pair_encoder.h"
#include "quatrain/models/positions.h"
#include "quatrain/models/resnet.h"
#include "quatrain/models/score_text.h"
#include "quatrain/models/seq2seq.h"
#include "quatrain/models/seq2seq_decoder.h"
#include "quatrain/models/text_classifier.h"
#include "quatrain/nn.h"
#include "quatrain/nn/weights.h"
#include "quatrain/ops.h"
#include "quatrain/pair_ops.h"
#include "quatrain/word_ops.h"
