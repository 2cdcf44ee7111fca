#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/data/agreement.h"
#include "quatrain/data/example.h"

namespace quatrain::data {

/// How one file is cut: about these shares become train, dev and test. A hash of each text says in which set
/// it is, so that equal texts are in one set, and stay there when the file grows.
struct QUATRAIN_API Shares {
  double train = 0.8, dev = 0.1, test = 0.1;
  /// "80/10/10": three numbers above 0, as shares of their sum. Anything else is a std::invalid_argument.
  static Shares parse(std::string_view text);
};

/// Where the examples come from.
struct QUATRAIN_API Source {
  std::string reader = "tsv";          ///< a name among readers()
  std::filesystem::path folder;        ///< where the files lie; not used by "agreement"
  std::optional<Shares> shares;        ///< of "tsv": `folder` is one file, to be cut into three sets
  std::optional<Tokenizer> tokenizer;  ///< instead of the reader's own
  /// Of "tsv" without shares: the one set that is read, train, dev or test; empty: all three.
  std::string only = "";
  /// Of "tsv": what labels there may be, by their numbers; empty: those of the training set, or of `only`.
  std::vector<std::string> labels = {};
  AgreementOptions agreement;  ///< of "agreement" alone
};

/// One named reader, for lists and messages.
struct QUATRAIN_API Reader {
  const char* name;
  const char* summary;  ///< one line: what it reads
  bool needs_folder;
  bool takes_folder = needs_folder;  ///< one that is given is read
};

/// sst, sst5, imdb, sva, tsv, agreement.
QUATRAIN_API const std::vector<Reader>& readers();

/// Reads or generates a dataset. A missing file, an empty one, a bad label, a wrong number of columns, bytes
/// that are not UTF-8: one sentence with the file, the line and what was found there (c10::Error).
QUATRAIN_API Splits load(const Source& source);

}  // namespace quatrain::data
