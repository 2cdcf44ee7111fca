#pragma once

#include <filesystem>
#include <string>
#include <vector>

/// Runs the built program as a user does.
namespace quatrain::cli {

/// What a call gave.
struct Outcome {
  int code = 0;
  std::string out, error;
};

/// A temporary folder, removed at the end. Programs run in it.
class Workplace {
 public:
  Workplace();
  ~Workplace();
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path path(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, const std::string& text) const;
  std::string read(const std::string& name) const;

  /// `quatrain WORDS`, as a shell reads them, with `input` on the standard input: in a child of this process,
  /// which has loaded its libraries.
  Outcome run(const std::string& words, const std::string& input = "") const;

  /// The same as `LAUNCHER quatrain WORDS`, in a process of its own.
  Outcome run_under(const std::string& launcher, const std::string& words,
                    const std::string& input = "") const;

  /// Small data in the formats of sst, tsv and sva, which a model can learn; returns the folder's name.
  std::string make_data() const;

 private:
  int call(const std::string& launcher, const std::string& words) const;
  void write_text_pairs(const std::string& part, int count) const;

  std::filesystem::path folder_;
};

/// The program in the background, writing its standard error to `error`. The other standard files are the
/// test's own where none are named.
class Background {
 public:
  Background(const std::string& words, const std::filesystem::path& error,
             const std::filesystem::path& input = "", const std::filesystem::path& out = "");
  void signal(int number) const;
  /// Waits, at most a minute, until it has a handler for the signal.
  void wait_until_it_catches(int number) const;
  /// Its exit code, or 128 + the signal that ended it.
  int wait() const;

 private:
  int process_ = 0;
};

/// Waits until a file is as long, at most a minute.
void wait_for(const std::filesystem::path& file, size_t size);

/// Settings that make a run small.
inline const std::string kSmall =
    " --set model.width=32 --set model.heads=1 --set model.feed_forward=32 --set model.layers=1"
    " --set agreement.train=200 --set agreement.dev=50 --set agreement.test=60 --set train.epochs=0"
    " --set train.evaluate_every=0 --set train.threads=1";

}  // namespace quatrain::cli
