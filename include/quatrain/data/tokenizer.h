#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "quatrain/api.h"

/// Text in, numbers out: datasets, vocabularies, batches.
namespace quatrain::data {

/// How a line becomes words. A run stores the name, so that training and prediction agree.
///   whitespace  the words as they stand between spaces: text that is tokenised already
///   lowercase   the same with A-Z lowered
///   simple      A-Z lowered, <br /> dropped, every ASCII punctuation mark a separate word, except an
///               apostrophe inside a word ("don't"); bytes beyond ASCII belong to words. For raw text
enum class Tokenizer { whitespace, lowercase, simple };

/// All of them, for lists and messages.
inline constexpr std::array kTokenizers{Tokenizer::whitespace, Tokenizer::lowercase, Tokenizer::simple};

/// "whitespace", "lowercase", "simple".
QUATRAIN_API const char* name(Tokenizer tokenizer);
/// The inverse; an unknown name is an error that lists the known ones.
QUATRAIN_API Tokenizer parse_tokenizer(std::string_view name);

/// The words of one line, none of them empty.
QUATRAIN_API std::vector<std::string> split(std::string_view line, Tokenizer tokenizer);

/// Why a text has no word, as "must not be empty"; empty where it has one. Words of nothing but white space,
/// control and format characters do not count; split() makes some, of a no-break space for
/// example, because it looks at ASCII alone.
QUATRAIN_API std::string word_problem(std::string_view text, Tokenizer tokenizer);

}  // namespace quatrain::data
