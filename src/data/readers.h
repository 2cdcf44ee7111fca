#pragma once

#include <vector>

#include "quatrain/data/dataset.h"
#include "quatrain/data/example.h"

/// The file readers, one a file; dataset.cpp lists them under their names.
namespace quatrain::data {

Splits read_sst(const Source& source);
Splits read_sst5(const Source& source);
Splits read_imdb(const Source& source);
Splits read_sva(const Source& source);
Splits read_tsv(const Source& source);

/// Parts of a set, in their old order; equal texts stay together.
struct Parts {
  std::vector<Example> train, dev, test;
};

/// Takes about the given shares out for dev and test, the same ones each time.
Parts split_by_text(std::vector<Example> examples, double dev, double test);

}  // namespace quatrain::data
