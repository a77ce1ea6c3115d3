// Vector addition of many sizes, with integers and floats, and with full and partial last
// workgroups.
#include <vector>

#include "check.hpp"

template <typename T>
__global__ void add(const T* a, const T* b, T* sum, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) sum[i] = a[i] + b[i];
}

template <typename T>
void run(int count, unsigned workgroup) {
  std::vector<T> a(static_cast<size_t>(count)), b(a.size()), sum(a.size());
  for (int i = 0; i < count; ++i) {
    a[static_cast<size_t>(i)] = static_cast<T>(i * 3);
    b[static_cast<size_t>(i)] = static_cast<T>(7 - i);
  }
  const size_t bytes = a.size() * sizeof(T);
  T* device[3];
  for (T*& each : device) CHECK_HIP(hipMalloc(&each, bytes));
  CHECK_HIP(hipMemcpy(device[0], a.data(), bytes, hipMemcpyHostToDevice));
  CHECK_HIP(hipMemcpy(device[1], b.data(), bytes, hipMemcpyHostToDevice));
  const unsigned groups = (static_cast<unsigned>(count) + workgroup - 1) / workgroup;
  add<T><<<groups, workgroup>>>(device[0], device[1], device[2], count);
  CHECK_HIP(hipGetLastError());
  CHECK_HIP(hipMemcpy(sum.data(), device[2], bytes, hipMemcpyDeviceToHost));
  for (size_t i = 0; i < sum.size(); ++i) CHECK(sum[i] == static_cast<T>(a[i] + b[i]));
  for (T* each : device) CHECK_HIP(hipFree(each));
}

int main() {
  for (const int count : {1, 63, 64, 65, 1000, 4096, 100000})
    for (const unsigned workgroup : {64u, 100u, 256u, 1024u}) {
      run<int>(count, workgroup);
      run<float>(count, workgroup);
      run<double>(count, workgroup);
      run<long long>(count, workgroup);
    }
  std::puts("ok");
}
