#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <filesystem>
#include <string>

#include "support/atomic_folder.h"

namespace quatrain::train {

/// What an exception of any library says, in one sentence: without torch's stack, and with the path that the
/// standard library had trouble with.
inline std::string sentence_of(const std::exception& error) {
  if (const auto* of_torch = dynamic_cast<const c10::Error*>(&error))
    return of_torch->what_without_backtrace();
  if (const auto* of_files = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return "cannot use '" + AtomicFolder::name_of(of_files->path1()) + "': " + of_files->code().message();
  return error.what();
}

}  // namespace quatrain::train
