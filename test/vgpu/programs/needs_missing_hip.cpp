// A program that is linked with a HIP library. The dynamic linker finds it only by LD_LIBRARY_PATH.
extern "C" int hip_of_no_version();
int main() { return hip_of_no_version(); }
