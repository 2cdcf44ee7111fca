#include "cli/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "cli/process.h"

extern char** environ;

namespace quatrain::cli {

namespace fs = std::filesystem;

namespace {

// Programs inherit what is ignored under nohup or in the background of a script, and the user's data folder.
struct PlainSurroundings : testing::Environment {
  void SetUp() override {
    for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE}) ::signal(number, SIG_DFL);
    unsetenv("QUATRAIN_DATA");
    setenv("GOMP_SPINCOUNT", "10000", 0);  // without it the program would start itself anew
  }
};
[[maybe_unused]] const auto* const kPlain = testing::AddGlobalTestEnvironment(new PlainSurroundings);

int code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// One of the standard files of a child.
void open_as(int descriptor, const char* file, int flags) {
  const int opened = ::open(file, flags, 0666);
  if (opened < 0 || ::dup2(opened, descriptor) < 0) ::_exit(126);
  ::close(opened);
}

// Runs the program in this process, a child of the tests, which loaded torch before it: loading takes most of
// the time of a short command. (No test computes with torch's threads, which a child would miss.) Returns
// only where the words have what a shell alone can do.
void run_forked(const fs::path& folder, const std::string& words) {
  wordexp_t split;
  if (::chdir(folder.c_str()) != 0) ::_exit(126);
  if (::wordexp(("'" QUATRAIN_PROGRAM "' " + words).c_str(), &split, WRDE_NOCMD) != 0) return;
  open_as(STDIN_FILENO, ".in", O_RDONLY);
  open_as(STDOUT_FILENO, ".out", O_WRONLY | O_CREAT | O_TRUNC);
  open_as(STDERR_FILENO, ".error", O_WRONLY | O_CREAT | O_TRUNC);
  run_process(static_cast<int>(split.we_wordc), split.we_wordv);
}

}  // namespace

Workplace::Workplace() {
  std::string name = (fs::temp_directory_path() / "quatrain-XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
  folder_ = name;
}

Workplace::~Workplace() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void Workplace::write(const std::string& name, const std::string& text) const {
  fs::create_directories(path(name).parent_path());
  std::ofstream(path(name), std::ios::binary) << text;
}

std::string Workplace::read(const std::string& name) const {
  std::ostringstream text;
  text << std::ifstream(path(name), std::ios::binary).rdbuf();
  return text.str();
}

Outcome Workplace::run(const std::string& words, const std::string& input) const {
  write(".in", input);
  for (const char* old : {".out", ".error"}) fs::remove(path(old));
  std::fflush(nullptr);  // or the child would print it too
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("the tests cannot fork");
  if (child == 0) {
    run_forked(folder_, words);
    ::_exit(call("", words));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) != child)
    if (errno != EINTR) throw std::runtime_error("the tests lost a child");
  return {code_of(status), read(".out"), read(".error")};
}

Outcome Workplace::run_under(const std::string& launcher, const std::string& words,
                             const std::string& input) const {
  write(".in", input);
  const int code = call(launcher, words);
  return {code, read(".out"), read(".error")};
}

int Workplace::call(const std::string& launcher, const std::string& words) const {
  const std::string command = "cd '" + folder_.string() + "' && " + launcher + " '" QUATRAIN_PROGRAM "' " +
                              words + " <.in >.out 2>.error";
  return code_of(std::system(command.c_str()));
}

void Workplace::write_text_pairs(const std::string& part, int count) const {
  std::string tsv, a, b, sim, id;
  for (int k = 0; k < count; ++k) {
    const std::string first = "is it word" + std::to_string(k / 3), second = "it is word" + std::to_string(k);
    tsv += std::string(k % 2 ? "yes" : "no") + "\t" + first + "\t" + second + "\n";
    a += first + "\n", b += second + "\n", sim += k % 3 ? "0\n" : "1\n";
    id += "Q" + std::to_string(k / 3) + "-D" + std::to_string(k / 3) + "-" + std::to_string(k) + "\n";
  }
  write("entailed/" + part + ".tsv", tsv);
  const std::string answers = "answers/" + part + "/";
  write(answers + "a.toks", a), write(answers + "b.toks", b), write(answers + "sim.txt", sim);
  write(answers + "id.txt", id);
}

std::string Workplace::make_data() const {
  const std::vector<std::string> good{"good", "fine", "lovely"}, bad{"bad", "dull", "poor"},
      others{"film", "a", "the", "plot", "with", "actors"};
  const auto text = [&](int i) {
    const auto& feeling = i % 2 ? good : bad;
    std::string line;
    for (int word = 0; word < 3 + i % 5; ++word)
      line += others[static_cast<size_t>(i * 7 + word * 3) % others.size()] + " ";
    return line + feeling[static_cast<size_t>(i / 2) % feeling.size()] + " " + std::to_string(i);
  };
  int i = 0;
  for (const auto& [part, count] : {std::pair{"train", 120}, std::pair{"dev", 30}, std::pair{"test", 40}}) {
    std::string sst, tsv, imdb;
    for (const int end = i + count; i < end; ++i) {
      sst += std::to_string(i % 2) + " " + text(i) + "\n";
      tsv += std::string(i % 2 ? "good" : "bad") + "\t" + text(i) + "\n";
      imdb += std::to_string(i) + "\t" + std::to_string(i % 2) + "\t" + text(i) + "\n";
    }
    write("reviews/" + std::string(part) + ".tsv", imdb);
    write("data/stsa.binary." + std::string(part), sst);
    write("data/" + std::string(part) + ".tsv", tsv);
  }
  for (const auto& [part, count] : {std::pair{"train", 40}, std::pair{"dev", 6}, std::pair{"test", 6}}) {
    std::string lines, answers;
    for (int k = 0; k < count; ++k) {
      lines += text(k) + "\n";
      answers += "so " + text(k) + "\n";
    }
    write("pairs/" + std::string(part) + ".de", lines);
    write("pairs/" + std::string(part) + ".en", answers);
    write("prose/" + std::string(part) + ".txt", lines);
    write_text_pairs(part, count);
  }
  std::string sentences, gold;
  for (int k = 0; k < 60; ++k) {
    const bool plural = k % 2;
    sentences += "word" + std::to_string(k) + " key" + (plural ? "s" : "") + " to the cabinet " +
                 (plural ? "are" : "is") + " here <eos>\n";
    gold += std::string("5\t") + (plural ? "are\tis" : "is\tare") + "\t" + std::to_string(k % 3) + "\n";
  }
  write("data/subj_agr_filtered.text", sentences);
  write("data/subj_agr_filtered.gold", gold);
  return "data";
}

Background::Background(const std::string& words, const fs::path& error, const fs::path& input,
                       const fs::path& out) {
  std::istringstream stream(std::string(QUATRAIN_PROGRAM) + " " + words);
  std::vector<std::string> split{std::istream_iterator<std::string>(stream), {}};
  std::vector<char*> arguments;
  for (auto& word : split) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC;
  if (!input.empty()) posix_spawn_file_actions_addopen(&actions, 0, input.c_str(), O_RDONLY, 0);
  if (!out.empty()) posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), kWrite, 0644);
  posix_spawn_file_actions_addopen(&actions, 2, error.c_str(), kWrite, 0644);
  if (posix_spawn(&process_, QUATRAIN_PROGRAM, &actions, nullptr, arguments.data(), environ) != 0)
    throw std::runtime_error("cannot start " QUATRAIN_PROGRAM);
  posix_spawn_file_actions_destroy(&actions);
}

void Background::signal(int number) const {
  kill(process_, number);
}

void Background::wait_until_it_catches(int number) const {
  const auto begin = std::chrono::steady_clock::now();
  const auto catches = [&] {
    std::ifstream file("/proc/" + std::to_string(process_) + "/status");
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("SigCgt:")) return (std::stoull(line.substr(7), nullptr, 16) >> (number - 1)) & 1;
    return 0ULL;
  };
  while (!catches() && std::chrono::steady_clock::now() - begin < std::chrono::minutes(1))
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

int Background::wait() const {
  int status = 0;
  waitpid(process_, &status, 0);
  return code_of(status);
}

void wait_for(const fs::path& file, size_t size) {
  const auto begin = std::chrono::steady_clock::now();
  std::error_code missing;
  while ((!fs::exists(file, missing) || fs::file_size(file, missing) < size) &&
         std::chrono::steady_clock::now() - begin < std::chrono::minutes(1))
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

}  // namespace quatrain::cli
