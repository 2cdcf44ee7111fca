#pragma once

#include <c10/util/Exception.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/text.h"

namespace quatrain::data {

/// "FILE:LINE", as compilers write it.
std::string place(const std::filesystem::path& file, int64_t line);

/// Hands over each line with its number, from 1 on, without its end ("\n" or "\r\n") and without a byte order
/// mark; the file may be compressed by gzip. A file that is missing or empty, a line that is not UTF-8 or
/// holds a NUL byte: an error.
void for_each_line(const std::filesystem::path& file,
                   const std::function<void(std::string_view, int64_t)>& take);

/// The columns between tabs.
std::vector<std::string_view> columns(std::string_view line);

/// Without the white space of ASCII at both ends.
std::string_view trimmed(std::string_view text);

/// What the labels' column may be called in the first line of a user's file, in any case.
inline const std::vector<std::string> kLabelNames{"label",    "labels", "class",
                                                  "category", "target", "gold_label"};

/// Whether a column of the first line has one of these names, and is none of a label.
bool is_header(std::string_view column, const std::vector<std::string>& names = kLabelNames);

/// Bytes of any kind in double quotes, as a message shows them.
std::string readable(std::string_view bytes);

/// A whole number in decimal digits, or nothing.
std::optional<int64_t> whole_number(std::string_view text);

/// False also where no file can have that name, because it is too long.
bool is_there(const std::filesystem::path& file);

/// An error where the folder is not given, missing or a file; `files` says what it should contain, and
/// `otherwise` what to do with a file.
void check_folder(const std::string& reader, const std::filesystem::path& folder, const std::string& files,
                  const std::string& otherwise = "");

/// The first of folder/sub that holds files[0]; the other files must be there too. Otherwise an error that
/// names what was looked for and where; `otherwise` as in check_folder.
std::filesystem::path find_folder(const std::string& reader, const std::filesystem::path& folder,
                                  const std::vector<std::string>& subs, const std::vector<std::string>& files,
                                  const std::string& otherwise = "");

}  // namespace quatrain::data
