#include "quatrain/data/kaldi_archive.h"

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <vector>

#include "fuzz/support.h"

/// A Kaldi archive, or a list of entries. The first byte says which: an archive of matrices, one of whole
/// numbers, or a list, whose locations have ranges.
QUATRAIN_FUZZ_TARGET(kaldi)(const uint8_t* data, size_t size) {
  using namespace quatrain;
  static const fuzz::Folder folder;
  if (size == 0) return 0;
  const auto file = folder.write("kaldi.ark", fuzz::text_of(data + 1, size - 1));
  constexpr size_t kFactor = 16384;  // gzip's thousand, times four bytes a number, times copies that grow
  fuzz::read_or_refuse<c10::Error>(size, kFactor, [&] {
    if (data[0] == 2) {
      data::read_kaldi_script(file);
      return;
    }
    data::KaldiArchive archive(file);
    std::string key;
    at::Tensor matrix;
    std::vector<int32_t> numbers;
    while (data[0] % 2 ? archive.next(key, numbers) : archive.next(key, matrix)) {
    }
  });
  return 0;
}
