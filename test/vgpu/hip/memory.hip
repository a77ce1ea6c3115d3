// Copies in every direction: pageable, pinned, registered, pitched. Memset and symbols. Sizes below
// and above the runtime's staging limit.
#include <cstring>
#include <vector>

#include "check.hpp"

__device__ int device_symbol[4];
__constant__ int constant_symbol;

__global__ void double_each(int* values, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] *= 2;
}
__global__ void read_symbols(int* out) {
  if (threadIdx.x == 0) *out = device_symbol[2] + constant_symbol;
}

void copies(size_t bytes) {
  std::vector<unsigned char> source(bytes), back(bytes, 0xee);
  for (size_t i = 0; i < bytes; ++i) source[i] = static_cast<unsigned char>(i * 131 + (i >> 8));
  void *one, *two;
  CHECK_HIP(hipMalloc(&one, bytes));
  CHECK_HIP(hipMalloc(&two, bytes));
  CHECK_HIP(hipMemcpy(one, source.data(), bytes, hipMemcpyHostToDevice));
  CHECK_HIP(hipMemcpy(two, one, bytes, hipMemcpyDeviceToDevice));
  CHECK_HIP(hipMemcpy(back.data(), two, bytes, hipMemcpyDeviceToHost));
  CHECK(back == source);
  if (bytes > 16) {  // from and to odd addresses
    CHECK_HIP(hipMemcpy(static_cast<char*>(two) + 3, static_cast<char*>(one) + 5, bytes - 9,
                        hipMemcpyDeviceToDevice));
    CHECK_HIP(
        hipMemcpy(back.data(), static_cast<char*>(two) + 3, bytes - 9, hipMemcpyDeviceToHost));
    CHECK(std::memcmp(back.data(), source.data() + 5, bytes - 9) == 0);
  }
  CHECK_HIP(hipFree(one));
  CHECK_HIP(hipFree(two));
}

void sets() {
  constexpr size_t kCount = 10000;
  unsigned* device;
  CHECK_HIP(hipMalloc(&device, kCount * sizeof(unsigned)));
  std::vector<unsigned> host(kCount);
  CHECK_HIP(hipMemset(device, 0xa5, kCount * sizeof(unsigned)));
  CHECK_HIP(hipMemcpy(host.data(), device, kCount * sizeof(unsigned), hipMemcpyDeviceToHost));
  for (const unsigned each : host) CHECK(each == 0xa5a5a5a5);
  CHECK_HIP(hipMemsetD32(device, 0x12345678, kCount / 2));
  CHECK_HIP(hipMemcpy(host.data(), device, kCount * sizeof(unsigned), hipMemcpyDeviceToHost));
  CHECK(host[0] == 0x12345678 && host[kCount / 2 - 1] == 0x12345678 &&
        host[kCount / 2] == 0xa5a5a5a5);
  // An odd address and size. For sizes that do not reach the next multiple of 8, HIP 5.2.3 itself
  // writes far too many bytes.
  CHECK_HIP(hipMemset(reinterpret_cast<char*>(device) + 1, 0, 21));
  CHECK_HIP(hipMemcpy(host.data(), device, 24, hipMemcpyDeviceToHost));
  CHECK(host[0] == 0x00000078 && host[1] == 0 && host[4] == 0 && host[5] == 0x12340000);
  CHECK_HIP(hipFree(device));
}

void pitched() {
  constexpr size_t kWidth = 100, kHeight = 37;
  void* device;
  size_t pitch = 0;
  hipDeviceProp_t properties;
  CHECK_HIP(hipGetDeviceProperties(&properties, 0));
  // HIP 5 aligns the pitch as for images, of which gfx942 has none: to 0 bytes.
  if (HIP_VERSION_MAJOR < 6 && std::strncmp(properties.gcnArchName, "gfx942", 6) == 0) {
    CHECK(hipMallocPitch(&device, &pitch, kWidth, kHeight) == hipErrorInvalidValue);
    return;
  }
  CHECK_HIP(hipMallocPitch(&device, &pitch, kWidth, kHeight));
  CHECK(pitch >= kWidth);
  std::vector<unsigned char> source(kWidth * kHeight), back(source.size());
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<unsigned char>(i);
  CHECK_HIP(
      hipMemcpy2D(device, pitch, source.data(), kWidth, kWidth, kHeight, hipMemcpyHostToDevice));
  CHECK_HIP(
      hipMemcpy2D(back.data(), kWidth, device, pitch, kWidth, kHeight, hipMemcpyDeviceToHost));
  CHECK(back == source);
  CHECK_HIP(hipFree(device));
}

void host_memory() {
  constexpr int kCount = 5000;
  int* pinned;
  CHECK_HIP(hipHostMalloc(&pinned, kCount * sizeof(int)));
  for (int i = 0; i < kCount; ++i) pinned[i] = i;
  double_each<<<(kCount + 255) / 256, 256>>>(pinned, kCount);  // the GPU accesses host memory
  CHECK_HIP(hipDeviceSynchronize());
  for (int i = 0; i < kCount; ++i) CHECK(pinned[i] == 2 * i);
  CHECK_HIP(hipHostFree(pinned));

  std::vector<int> pageable(kCount, 21);
  CHECK_HIP(hipHostRegister(pageable.data(), kCount * sizeof(int), hipHostRegisterDefault));
  int* alias;
  CHECK_HIP(hipHostGetDevicePointer(reinterpret_cast<void**>(&alias), pageable.data(), 0));
  double_each<<<(kCount + 255) / 256, 256>>>(alias, kCount);
  CHECK_HIP(hipDeviceSynchronize());
  for (const int each : pageable) CHECK(each == 42);
  CHECK_HIP(hipHostUnregister(pageable.data()));
}

void symbols() {
  const int values[4] = {1, 2, 30, 4};
  const int constant = 12;
  CHECK_HIP(hipMemcpyToSymbol(HIP_SYMBOL(device_symbol), values, sizeof values));
  CHECK_HIP(hipMemcpyToSymbol(HIP_SYMBOL(constant_symbol), &constant, sizeof constant));
  int* device;
  CHECK_HIP(hipMalloc(&device, sizeof(int)));
  read_symbols<<<1, 64>>>(device);
  int result = 0;
  CHECK_HIP(hipMemcpy(&result, device, sizeof result, hipMemcpyDeviceToHost));
  CHECK(result == 42);
  CHECK_HIP(hipFree(device));
}

void budget() {
  size_t free_before = 0, free_during = 0, free_after = 0, total = 0;
  CHECK_HIP(hipMemGetInfo(&free_before, &total));
  CHECK(total >= (size_t{16} << 30));
  void* memory;
  CHECK_HIP(hipMalloc(&memory, size_t{1} << 30));
  CHECK_HIP(hipMemGetInfo(&free_during, &total));
  CHECK(free_before - free_during >= (size_t{1} << 30));
  CHECK_HIP(hipFree(memory));
  CHECK_HIP(hipMemGetInfo(&free_after, &total));
  CHECK(free_after >= free_before);
  CHECK(hipMalloc(&memory, size_t{1} << 50) == hipErrorOutOfMemory);
}

int main() {
  for (const size_t bytes :
       {size_t{1}, size_t{3}, size_t{4096}, size_t{65537}, size_t{1} << 20, (size_t{5} << 20) + 13})
    copies(bytes);
  sets();
  pitched();
  host_memory();
  symbols();
  budget();
  std::puts("ok");
}
