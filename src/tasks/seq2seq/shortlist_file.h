#pragma once

#include <filesystem>
#include <string>

#include "quatrain/models/shortlist.h"

namespace quatrain::tasks {

/// Writes it beside its place and renames it. `pieces`: the checksum of the vocabularies that it belongs to.
void write_shortlist(const models::Shortlist& shortlist, const std::string& pieces,
                     const std::filesystem::path& file);

/// Reads it again. A damaged file, and one of other pieces, is a std::runtime_error, of which `way_out` is
/// the end: what to do.
models::Shortlist read_shortlist_file(const std::filesystem::path& file, const std::string& pieces,
                                      const std::string& way_out);

}  // namespace quatrain::tasks
