#pragma once

#include <string>
#include <vector>

#include "cli/commands.h"

/// What both kinds of scores need.
namespace quatrain::cli {

/// The lines of a file, or of the standard input where it is "-".
std::vector<std::string> scored_lines(const std::string& file);

/// True of transcripts, whose lines end with a name.
bool is_trn(const std::string& file);

/// Throws where the hypotheses are not as many as those of reference `of`, or there are none.
void require_as_many(size_t hypotheses, size_t references, const ScoreArguments& arguments, size_t of);

/// `score --metric wer`, `cer`.
int score_errors(const ScoreArguments& arguments);

}  // namespace quatrain::cli
