#pragma once

/// The layers, in the idiom of torch::nn. Components are concatenated on the last axis; see docs/layers.md.
///
/// Constructors throw std::invalid_argument for sizes that n does not divide, numbers out of range and
/// options that contradict each other. forward() throws what its operators throw (ops.h): c10::Error where
/// shapes, types or devices do not fit. Each is one sentence with the layer, the argument, the rule and the
/// value.
#include "quatrain/nn/activation.h"
#include "quatrain/nn/algebra_spec.h"
#include "quatrain/nn/attention.h"
#include "quatrain/nn/convert.h"
#include "quatrain/nn/convolution.h"
#include "quatrain/nn/decoder.h"
#include "quatrain/nn/dropout.h"
#include "quatrain/nn/embedding.h"
#include "quatrain/nn/encoder.h"
#include "quatrain/nn/factorize.h"
#include "quatrain/nn/feed_forward.h"
#include "quatrain/nn/init.h"
#include "quatrain/nn/layer.h"
#include "quatrain/nn/layout.h"
#include "quatrain/nn/linear.h"
#include "quatrain/nn/norm.h"
#include "quatrain/nn/options.h"
#include "quatrain/nn/parameters.h"
#include "quatrain/nn/recurrent.h"
#include "quatrain/nn/recurrent_cell.h"
#include "quatrain/nn/recurrent_weights.h"
#include "quatrain/nn/weight.h"
