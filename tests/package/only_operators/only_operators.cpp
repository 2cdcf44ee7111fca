// Calls nothing of the library, as a program that loads a traced or packaged model: the operators must be
// there.

#include <ATen/core/dispatch/Dispatcher.h>

int main() {
  return c10::Dispatcher::singleton().findSchema({"quatrain::linear", ""}) ? 0 : 1;
}
