// Debian's libsentencepiece and libc10 both define a global variable FLAGS_minloglevel, an object of 32 bytes
// and an int. The dynamic linker takes the first of a name for all, and where that was libc10's, the object
// was written over what lies behind it: failed allocations ended the program instead of throwing. This one
// comes before both and has room for either; all that may be wrong is how much libc10 logs.

extern "C" {
alignas(16) __attribute__((visibility("default"))) char FLAGS_minloglevel[64] = {};
}
