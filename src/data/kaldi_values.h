#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/byte_file.h"
#include "quatrain/data/kaldi_archive.h"

/// Values of Kaldi's archives, behind their keys. `entry` names one in messages.
namespace quatrain::data {

/// Rows of a matrix, from 0 on, the last included.
struct RowRange {
  int64_t first, last;
};

/// An error that names the file and the entry and closes with a way out.
[[noreturn]] void fail_value(const ByteFile& file, const std::string& entry, const std::string& problem);

/// Float32 (rows, columns); given a range, the file is left anywhere.
at::Tensor read_matrix(ByteFile& file, const std::string& entry, const std::optional<RowRange>& rows = {});
std::vector<int32_t> read_integers(ByteFile& file, const std::string& entry);
/// Leaves the file anywhere.
KaldiSize read_matrix_size(ByteFile& file, const std::string& entry, const std::optional<RowRange>& rows);

/// What KaldiEntry::location says.
struct KaldiLocation {
  std::filesystem::path file;
  std::optional<int64_t> offset;
  std::optional<RowRange> rows;
};
/// An error where the text is a command, or of another form.
KaldiLocation parse_location(std::string_view text);
/// The same location with the file where it is found: in the folder, or else as it stands.
std::string resolve_location(std::string_view text, const std::filesystem::path& folder);

/// Why a text cannot be a key: "is empty", "has more than ..."; empty where it can.
std::string key_problem(std::string_view key);

}  // namespace quatrain::data
