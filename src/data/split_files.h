#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

/// Files of a set in a folder: STEM.ENDING, or STEM.ENDING.gz.
namespace quatrain::data {

/// What a dev set may be called.
inline const std::vector<std::string> kDevStems{"dev", "valid", "val"};

/// What the files of a set, train, dev or test, may be called.
std::vector<std::string> stems_of(const std::string& set);

/// The file, or an empty path where there is none. Both a plain and a compressed one are an error.
std::filesystem::path find_split_file(const std::filesystem::path& folder, const std::string& stem,
                                      const std::string& ending);

/// What `find` finds under one of the names; an empty path where there is nothing. Two finds are an error,
/// since one of them would not be read.
std::filesystem::path find_one(const std::vector<std::string>& names,
                               const std::function<std::filesystem::path(const std::string& name)>& find);

/// The file under one of the stems, as above.
std::filesystem::path find_split_file(const std::filesystem::path& folder,
                                      const std::vector<std::string>& stems, const std::string& ending);

/// All endings that files of these stems have, without .gz, in the order of their bytes.
std::vector<std::string> split_endings(const std::filesystem::path& folder,
                                       const std::vector<std::string>& stems);

/// All stems that files with this ending have, plain or compressed, in the order of their bytes.
std::vector<std::string> split_stems(const std::filesystem::path& folder, const std::string& ending);

/// The first of folder/sub that holds a file of one of the stems; otherwise an error. `files` says what is
/// looked for.
std::filesystem::path find_split_folder(const std::string& reader, const std::filesystem::path& folder,
                                        const std::vector<std::string>& subs,
                                        const std::vector<std::string>& stems, const std::string& files);

/// The set that must be there: `only`, or train where that is empty; another name is an error. `what` the
/// sets are of.
std::string needed_set(const std::string& only, const std::string& what);

}  // namespace quatrain::data
