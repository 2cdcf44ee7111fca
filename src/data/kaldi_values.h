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

/// Rows or columns, from 0 on, the last included.
struct KaldiRange {
  int64_t first, last;
};
/// A part of a matrix; nothing: all of them.
struct MatrixRange {
  std::optional<KaldiRange> rows, columns;
};

/// An error that names the file and the entry and closes with a way out.
[[noreturn]] void fail_value(const ByteFile& file, const std::string& entry, const std::string& problem);

/// Float32 (rows, columns); given a range, the file is left anywhere.
at::Tensor read_matrix(ByteFile& file, const std::string& entry, const MatrixRange& range = {});
std::vector<int32_t> read_integers(ByteFile& file, const std::string& entry);
/// Leaves the file anywhere.
KaldiSize read_matrix_size(ByteFile& file, const std::string& entry, const MatrixRange& range);

/// What KaldiEntry::location says.
struct KaldiLocation {
  std::filesystem::path file;
  std::optional<int64_t> offset;
  MatrixRange range;
};
/// An error where the text is a command, or of another form.
KaldiLocation parse_location(std::string_view text);
/// The same location with the file where it is found: in the folder, or else as it stands.
std::string resolve_location(std::string_view text, const std::filesystem::path& folder);

/// Why a text cannot be a key: "is empty", "has more than ..."; empty where it can.
std::string key_problem(std::string_view key);

}  // namespace quatrain::data
