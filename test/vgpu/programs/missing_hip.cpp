// Stands for a HIP library that no system has: its name ends in a version that HIP never had.
extern "C" int hip_of_no_version() { return 0; }
