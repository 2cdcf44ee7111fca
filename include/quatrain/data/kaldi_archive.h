#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "quatrain/api.h"

namespace quatrain {
class AtomicFile;
}

/// Kaldi's archives (.ark) of matrices and of whole numbers, and the lists of their entries (.scp).
///
/// Read are binary archives and those of text; matrices of floats and doubles (FM, DM) and compressed ones
/// (CM, CM2, CM3), and vectors of int32, as alignments are. All matrices become float32. Archives may be
/// compressed by gzip (their first bytes decide, not their names).
///
/// Errors are c10::Error: one sentence that names the file, the entry, what is wrong and the way out. Such
/// are a missing or empty file, one that is cut off or goes on with other things, an entry of another type, a
/// size that is negative or more than the file holds, a number that is not finite, a key that occurs twice.
/// Sizes are compared with the file before memory is taken.
namespace quatrain::data {

class ByteFile;

/// An archive, entry after entry.
class QUATRAIN_API KaldiArchive {
 public:
  explicit KaldiArchive(const std::filesystem::path& file);
  ~KaldiArchive();
  KaldiArchive(const KaldiArchive&) = delete;
  KaldiArchive& operator=(const KaldiArchive&) = delete;

  /// The next entry of an archive of matrices, (rows, columns) float32; false at the end.
  bool next(std::string& key, at::Tensor& matrix);
  /// The next entry of an archive of int32 vectors; false at the end.
  bool next(std::string& key, std::vector<int32_t>& values);

 private:
  bool next_key(std::string& key);

  std::unique_ptr<ByteFile> file_;
  std::unordered_set<std::string> keys_;
  bool binary_ = false;  // as its first entry is
};

/// A line of an .scp file.
struct QUATRAIN_API KaldiEntry {
  std::string key;
  /// Where the value lies: FILE for a file of one value; FILE:OFFSET for the value at this byte of an
  /// archive, behind its key; and behind either [FIRST:LAST] for these rows of a matrix, from 0 on, the last
  /// included, or [FIRST:LAST,FIRST:LAST] for these rows and columns, where ":" means all. As Kaldi does, a
  /// last row up to 3 behind the matrix means its last one.
  std::string location;
};

/// An .scp file. A file that does not start at the root is looked for in the list's folder, then where the
/// program runs, and the location says what was found. Commands ("gunzip -c a.gz |") are refused, never run.
QUATRAIN_API std::vector<KaldiEntry> read_kaldi_script(const std::filesystem::path& file);

/// The value at a location, as KaldiEntry has it.
QUATRAIN_API at::Tensor read_kaldi_matrix(const std::string& location);
QUATRAIN_API std::vector<int32_t> read_kaldi_integers(const std::string& location);

struct QUATRAIN_API KaldiSize {
  int64_t rows = 0, columns = 0;
};
/// The size of the matrix at a location: of a binary one, its header alone is read, and compared with the
/// length of the file.
QUATRAIN_API KaldiSize read_kaldi_size(const std::string& location);

/// Writes a binary archive of float32 matrices and its .scp, which names the archive as it was named here, or
/// by the place where `named` says that it will be.
/// Both are written beside their places and renamed by close(); without it nothing is left behind.
class QUATRAIN_API KaldiArchiveWriter {
 public:
  /// Files that cannot be written: std::runtime_error, here or later.
  KaldiArchiveWriter(std::filesystem::path ark, std::filesystem::path scp, std::filesystem::path named = {});
  ~KaldiArchiveWriter();
  KaldiArchiveWriter(const KaldiArchiveWriter&) = delete;
  KaldiArchiveWriter& operator=(const KaldiArchiveWriter&) = delete;

  /// Appends (rows, columns) of any floating type and device. A key that is empty, holds white space or was
  /// written before, a matrix that is empty or holds what is no finite float32: c10::Error.
  void write(const std::string& key, const at::Tensor& matrix);
  void close();

 private:
  std::filesystem::path named_;
  std::unique_ptr<AtomicFile> archive_, script_;
  std::set<std::string> keys_;
  std::string lines_;  // of the script
  int64_t offset_ = 0;
};

}  // namespace quatrain::data
