#include "cli/process.h"

int main(int count, char** words) {
  quatrain::cli::run_process(count, words);
}
