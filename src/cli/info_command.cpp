#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <sys/utsname.h>
#include <torch/version.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "cli/commands.h"
#include "cli/console.h"
#include "quatrain/algebra.h"
#include "quatrain/ops.h"
#include "quatrain/train/session.h"
#include "support/version.h"

extern char** environ;

namespace quatrain::cli {
namespace {

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

// What of the processor's abilities matters here.
std::string abilities() {
  std::ifstream file("/proc/cpuinfo");
  std::string found;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("flags")) continue;
    for (const char* flag : {"avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16",
                             "amx_tile", "amx_bf16", "amx_int8"})
      if ((line + " ").find(" " + std::string(flag) + " ") != line.npos)
        found += (found.empty() ? "" : " ") + std::string(flag);
    break;
  }
  return found.empty() ? "unknown" : found;
}

std::string properties(const algebra::Properties& p) {
  std::string text;
  const auto add = [&](bool holds, const char* name) {
    if (holds) text += (text.empty() ? "" : ", ") + std::string(name);
  };
  add(p.commutative, "commutative");
  add(p.associative, "associative");
  add(p.alternative && !p.associative, "alternative");
  add(p.division, "division");
  add(p.norm_multiplicative, "norm-multiplicative");
  add(!p.unital, "e_0 is no identity");
  return text.empty() ? "-" : text;
}

// "avx512 (also avx2, baseline)".
std::string instruction_sets() {
  const auto names = ops::instruction_sets();
  std::string others;
  for (size_t i = 1; i < names.size(); ++i) others += (i > 1 ? ", " : "") + names[i];
  return names.front() + (others.empty() ? "" : " (also " + others + ")");
}

}  // namespace

int info_command() {
  const std::string no_cuda = train::device_problem(at::kCUDA);  // before anything else of torch
  utsname system{};
  uname(&system);
  Table table("ll");
  table.row({"quatrain", version()});
  if (*commit()) table.row({"commit", commit()});
  table.row({"torch", TORCH_VERSION});
  table.row({"compiler", std::string("g++ ") + __VERSION__});
  table.row({"system", std::string(system.sysname) + " " + system.release + " " + system.machine});
  table.row({"processor", processor()});
  table.row({"abilities", abilities()});
  table.row({"torch computes with", at::get_cpu_capability()});
  table.row({"quatrain computes with", instruction_sets()});
  table.row({"threads", std::to_string(at::get_num_threads()) + " of " +
                            std::to_string(std::thread::hardware_concurrency()) + " processors"});
  table.row({"OpenMP", at::hasOpenMP() ? "yes" : "no"});
  table.row({"MKL", at::hasMKL() ? "yes" : "no"});
  table.row({"oneDNN", at::hasMKLDNN() ? "yes" : "no"});
  table.row({"devices", no_cuda.empty() ? "cpu, cuda" : "cpu (cuda: " + no_cuda + ")"});
  for (char** variable = environ; *variable; ++variable) {
    const std::string text = *variable;
    if (text.starts_with("QUATRAIN_") || text.starts_with("OMP_") || text.starts_with("MKL_") ||
        text.starts_with("ATEN_"))
      table.row({text.substr(0, text.find('=')), text.substr(text.find('=') + 1)});
  }
  std::fputs(table.text().c_str(), stdout);
  return kSuccess;
}

int info_algebras_command() {
  Table table("lrrrl");
  table.row({"algebra", "n", "R", "R/n^2", "properties"});
  table.rule();
  for (const auto& name : algebra::names()) {
    const auto& one = algebra::get(name);
    const double share = static_cast<double>(one.factors().rank) / (one.n() * one.n());
    table.row({name, std::to_string(one.n()), std::to_string(one.factors().rank), fixed(share, 3),
               properties(one.properties())});
  }
  std::fputs(table.text().c_str(), stdout);
  std::printf(
      "\nn: dimension. R: rank of the factors that are known, so that a layer costs R/n^2 of the real one's "
      "arithmetic.\n"
      "Also by signature: clifford(p,q), clifford(p,q,r), cyclic(n), negacyclic(n), group_z2(m). "
      "Learned: phm(n), phm(ALGEBRA), wkp(n).\n");
  return kSuccess;
}

}  // namespace quatrain::cli
