// Kernels that HIP has loaded, dispatched by Uptempo: those of __global__ functions in this file
// and in a second one, and those of modules.
#include <dlfcn.h>
#include <hip/hip_runtime.h>
#include <hip/hiprtc.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <uptempo/hip/hip.hpp>
#include <uptempo/program/code_object.hpp>
#include <uptempo/program/metadata.hpp>
#include <uptempo/uptempo.hpp>
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/text.hpp"

using namespace uptempo;
using uptempo::test::contains;
using uptempo::test::error_of;

__device__ uint32_t bias = 5;

namespace physics {

__global__ void step(float* y, const float* x, float dt, uint32_t n) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = dt * x[i] + y[i];
}

}  // namespace physics

namespace {

struct Pair {
  uint32_t factor;
  uint64_t addend;
};

template <class T>
__global__ void affine(T* out, Pair pair) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = static_cast<T>(i * pair.factor + pair.addend + bias);
}

__global__ void raise_bias(uint32_t by) { bias += by; }
__global__ void nothing() {}
__global__ void prints(uint32_t value) { printf("%u\n", value); }

constexpr uint32_t kLength = 1000;

template <class T>
class Device {
 public:
  explicit Device(std::vector<T> values) : size_(values.size()) {
    REQUIRE(hipMalloc(&data_, size_ * sizeof(T)) == hipSuccess);
    REQUIRE(hipMemcpy(data_, values.data(), size_ * sizeof(T), hipMemcpyHostToDevice) ==
            hipSuccess);
  }
  ~Device() { (void)hipFree(data_); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  T* data() const { return data_; }
  std::vector<T> host() const {
    std::vector<T> values(size_);
    REQUIRE(hipMemcpy(values.data(), data_, size_ * sizeof(T), hipMemcpyDeviceToHost) ==
            hipSuccess);
    return values;
  }

 private:
  size_t size_;
  T* data_ = nullptr;
};

// The bundle of module_kernels.hip.
std::span<const std::byte> module_kernels() {
  static const std::vector<char> bytes = [] {
    std::ifstream file(UPTEMPO_MODULE_KERNELS, std::ios::binary);
    REQUIRE(file.good());
    return std::vector<char>(std::istreambuf_iterator<char>(file), {});
  }();
  return std::as_bytes(std::span(bytes));
}

hipModule_t load(const void* code) {
  hipModule_t module = nullptr;
  REQUIRE(hipModuleLoadData(&module, code) == hipSuccess);
  return module;
}

hipFunction_t function_of(hipModule_t module, const char* name) {
  hipFunction_t function = nullptr;
  REQUIRE(hipModuleGetFunction(&function, module, name) == hipSuccess);
  return function;
}

struct SharedLibrary {
  explicit SharedLibrary(const char* path) : handle(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    INFO(path);
    REQUIRE(handle != nullptr);
  }
  template <class R>
  R call(const char* name) const {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): as dlsym() gives functions
    return reinterpret_cast<R (*)()>(dlsym(handle, name))();
  }
  const void* function() const { return call<const void*>("function_of_library"); }
  uint32_t total() const { return call<uint32_t>("total_of_library"); }

  void* handle;  // stays open, because HIP does not forget its kernels
};

// A queue on HIP's current device.
struct OnDevice {
  Runtime runtime;
  Agent gpu = hip::agent(runtime);
  Queue queue{gpu};
};

}  // namespace

TEST_CASE("a __global__ function that HIP has not used is dispatched with its own types") {
  OnDevice on;
  std::vector<float> x(kLength), y(kLength), expected(kLength);
  for (uint32_t i = 0; i < kLength; ++i) {
    x[i] = static_cast<float>(i);
    y[i] = static_cast<float>(2 * i + 1);
    expected[i] = 0.5f * x[i] + y[i];  // exact
  }
  const Device<float> device_x(x), device_y(y);
  const Kernel<float*, const float*, float, uint32_t> step = hip::kernel(physics::step);
  CHECK(step.name() == "_ZN7physics4stepEPfPKffj");
  CHECK(step.info().code.target.starts_with("gfx"));
  CHECK(step.info().code.is_known());
  BatchSubmitter batch(on.queue);
  batch.dispatch(step, Grid::blocks(dim3(8)).threads(dim3(128)), device_y.data(), device_x.data(),
                 0.5f, kLength);
  batch.submit().wait();
  CHECK(device_y.host() == expected);
}

TEST_CASE("a kernel of this process refuses a partial workgroup") {
  OnDevice on;
  const Device<uint32_t> out(std::vector<uint32_t>(256));
  const auto kernel = hip::kernel(affine<uint32_t>);
  const char* const expected = "Grid::blocks(4).threads(64)";
  BatchSubmitter batch(on.queue);
  CHECK(contains(error_of([&] {
                   batch.dispatch(kernel, Grid{200}, out.data(), Pair{3, 100});
                 }),
                 expected));
  Streams streams(on.gpu);
  Stream stream(streams);
  CHECK(contains(error_of([&] {
                   stream.launch(kernel, Grid{200}, out.data(), Pair{3, 100});
                 }),
                 expected));
  CHECK(contains(error_of([&] { batch.dispatch(hip::kernel(nothing), Grid{200}); }), expected));
}

TEST_CASE("an error of the queue names a kernel that HIP has loaded") {
  OnDevice on;
  const Signal gate(SignalKind::interrupt, 1);
  BatchSubmitter batch(on.queue);
  batch.after(gate);
  batch.dispatch(hip::kernel(nothing), Grid{64});
  const Completion completion = batch.submit();
  const std::string error = error_of([&] { on.queue.drain(Deadline::now()); });
  CAPTURE(error);
  CHECK(contains(error, "kernel '"));
  CHECK(contains(error, "nothing"));
  hsa_signal_store_screlease(gate.handle(), 0);
  completion.wait();
}

TEST_CASE("Uptempo and HIP share the device globals of a kernel") {
  OnDevice on;
  const auto raise = hip::kernel(raise_bias);
  const auto kernel = hip::kernel(affine<uint32_t>);
  BatchSubmitter batch(on.queue);
  batch.dispatch(raise, Grid{1}.by(1), 2u);
  batch.submit().wait();
  uint32_t value = 0;
  REQUIRE(hipMemcpyFromSymbol(&value, HIP_SYMBOL(bias), sizeof value) == hipSuccess);
  CHECK(value == 7);
  raise_bias<<<1, 1>>>(10);
  REQUIRE(hipDeviceSynchronize() == hipSuccess);
  const Device<uint32_t> out(std::vector<uint32_t>(256));
  batch.dispatch(kernel, Grid{256}.by(64), out.data(), Pair{3, 100});
  batch.submit().wait();
  std::vector<uint32_t> expected(256);
  for (uint32_t i = 0; i < 256; ++i) expected[i] = i * 3 + 100 + 17;
  CHECK(out.host() == expected);
  value = 5;
  REQUIRE(hipMemcpyToSymbol(HIP_SYMBOL(bias), &value, sizeof value) == hipSuccess);
}

TEST_CASE("a stream launches kernels of this process, with and without parameters") {
  OnDevice on;
  Streams streams(on.gpu);
  Stream stream(streams);
  stream.launch(hip::kernel(nothing), Grid{64}.by(64));
  const Device<uint64_t> out(std::vector<uint64_t>(64));
  stream.launch(hip::kernel(affine<uint64_t>), Grid{64}.by(64), out.data(), Pair{1, 1ull << 40});
  stream.synchronize();
  CHECK(out.host()[63] == 63 + (1ull << 40) + 5);
}

TEST_CASE("functions that HIP does not know, or that call the host, are refused by name") {
  const OnDevice on;
  CHECK(contains(error_of<Error>([&] { hip::kernel_info(&on); }), "hipFuncGetAttributes"));
  CHECK(contains(error_of<Error>([] { hip::kernel_info(hipFunction_t{}); }), "it is null"));
  const std::string error = error_of<Error>([] { hip::kernel(prints); });
  CHECK(contains(error, "prints"));
  CHECK(contains(error, "hidden_hostcall_buffer"));
}

TEST_CASE("types that the module's kernel does not take are refused, and others are checked once") {
  OnDevice on;
  hipModule_t const module = load(module_kernels().data());
  hipFunction_t const function = function_of(module, "add_to");
  const std::vector<ArgumentType> wrong{argument_type<uint32_t*>(), argument_type<uint64_t>()};
  CHECK(contains(error_of<Error>([&] { hip::kernel(function, wrong); }), "add_to"));
  const std::vector<ArgumentType> right{argument_type<uint32_t*>(), argument_type<uint32_t>()};
  const Kernel<Arguments> add = hip::kernel(function, right);
  const Device<uint32_t> words(std::vector<uint32_t>(64, 1));
  uint32_t* address = words.data();
  uint32_t addend = 41;
  void* params[] = {&address, &addend};
  BatchSubmitter batch(on.queue);
  batch.dispatch(add, Grid::blocks(1).threads(64), params);
  batch.submit().wait();
  CHECK(words.host() == std::vector<uint32_t>(64, 42));
  REQUIRE(hipModuleUnload(module) == hipSuccess);
}

// The results of dynamic_stack.hip.
uint32_t descents(uint32_t levels) {
  return 16 * levels + 120 + 3 * (levels == 0 ? 0 : descents(levels - 1));
}

// Whether the metadata of dynamic_stack.hip has .uses_dynamic_stack.
bool tells_dynamic_stack(const Agent& gpu) {
  std::ifstream file(UPTEMPO_STACK_KERNELS, std::ios::binary);
  const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
  const CodeObject object =
      select_code_object(std::as_bytes(std::span(bytes)), *parse_target_id(gpu.isa()));
  return read_metadata(metadata_note(object)).kernels.at(0).uses_dynamic_stack;
}

TEST_CASE("a kernel with a dynamic stack runs with the private memory that the caller gives") {
  OnDevice on;
  hipModule_t module = nullptr;
  REQUIRE(hipModuleLoad(&module, UPTEMPO_STACK_KERNELS) == hipSuccess);
  hipFunction_t const function = function_of(module, "descents");
  const std::string error = error_of<Error>([&] { hip::kernel(function); });
  CAPTURE(error);
  // Code objects before version 5 do not tell of a dynamic stack.
  const bool is_told = tells_dynamic_stack(on.gpu);
  CHECK(contains(error, "kernel 'descents'") == is_told);
  CHECK(contains(error, "call hip::kernel with PrivateBytes{bytes}") == is_told);
  const auto kernel = hip::kernel(function, hip::Beside{}, PrivateBytes{100 << 10});
  CHECK(kernel.info().private_segment_size == 100 << 10);
  const Device<uint32_t> out(std::vector<uint32_t>(64));
  uint32_t* address = out.data();
  uint32_t levels = 400;
  void* params[] = {&address, &levels};
  BatchSubmitter batch(on.queue);
  batch.dispatch(kernel, Grid::blocks(1).threads(64), params);
  batch.submit().wait();
  std::vector<uint32_t> expected;
  for (uint32_t i = 0; i < 64; ++i) expected.push_back(descents(400 + i % 2));
  CHECK(out.host() == expected);
  REQUIRE(hipModuleUnload(module) == hipSuccess);
}

TEST_CASE("a module that was loaded twice is refused unless an address selects one") {
  OnDevice on;
  hipModule_t modules[2] = {};
  hipFunction_t functions[2] = {};
  void* counters[2] = {};
  for (int i = 0; i < 2; ++i) {
    size_t size = 0;
    modules[i] = load(module_kernels().data());
    functions[i] = function_of(modules[i], "count");
    REQUIRE(hipModuleGetGlobal(&counters[i], &size, modules[i], "counter") == hipSuccess);
  }
  const std::string error = error_of<Error>([&] { hip::kernel(functions[1]); });
  CHECK(contains(error, "2 loaded code objects define it"));
  CHECK(contains(error, "Beside"));
  const Device<uint32_t> elsewhere(std::vector<uint32_t>(1));
  CHECK(contains(error_of<Error>([&] { hip::kernel(functions[1], hip::Beside{elsewhere.data()}); }),
                 "holds the address"));
  BatchSubmitter batch(on.queue);
  for (int i = 0; i < 2; ++i) {
    const auto count = hip::kernel(functions[i], hip::Beside{counters[i]});
    for (int times = 0; times <= i; ++times)
      batch.dispatch(count, Grid{1}.by(1), std::span<const std::byte>());
  }
  batch.submit().wait();
  for (uint32_t i = 0; i < 2; ++i) {
    uint32_t value = 0;
    REQUIRE(hipMemcpy(&value, counters[i], sizeof value, hipMemcpyDeviceToHost) == hipSuccess);
    CHECK(value == i + 1);
    REQUIRE(hipModuleUnload(modules[i]) == hipSuccess);
  }
}

TEST_CASE("a module whose bytes are gone or changed is dispatched, without its identity") {
  OnDevice on;
  const TargetId target = parse_target_id(on.gpu.isa()).value();
  const CodeObject object = select_code_object(module_kernels(), Loader(target));
  const std::span<const std::byte> code = object.bytes;
  const size_t size = (code.size() + 4095) / 4096 * 4096;
  void* const copy =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(copy != MAP_FAILED);
  std::memcpy(copy, code.data(), code.size());
  hipModule_t const module = load(copy);
  hipFunction_t const function = function_of(module, "add_to");
  const CodeIdentity identity = hip::kernel(function).info().code;
  CHECK(identity.is_known());
  std::memset(static_cast<std::byte*>(copy) + code.size() / 8, 0, 64);
  const auto changed = hip::kernel(function);
  munmap(copy, size);
  const auto gone = hip::kernel(function);
  // HIP either keeps the caller's bytes or has made a copy, which stays.
  const bool keeps = !gone.info().code.is_known();
  CHECK(changed.info().code == (keeps ? CodeIdentity{} : identity));
  CHECK(gone.info().code == changed.info().code);
  const Device<uint32_t> words(std::vector<uint32_t>(64, 21));
  uint32_t* address = words.data();
  uint32_t addend = 4;
  void* params[] = {&address, &addend};
  BatchSubmitter batch(on.queue);
  batch.dispatch(changed, Grid{64}.by(64), params);
  batch.dispatch(gone, Grid{64}.by(64), params);
  batch.submit().wait();
  CHECK(words.host() == std::vector<uint32_t>(64, 29));
  REQUIRE(hipModuleUnload(module) == hipSuccess);
  CHECK(contains(error_of<Error>([&] { hip::kernel(raise_bias, hip::Beside{copy}); }),
                 "holds the address"));
}

TEST_CASE("code that Program has loaded does not make a kernel's name ambiguous") {
  OnDevice on;
  const Program program(on.gpu, module_kernels());
  const auto of_program = program.kernel<uint32_t*, uint32_t>("add_to");
  hipModule_t const module = load(module_kernels().data());
  hipFunction_t const function = function_of(module, "add_to");
  const auto of_hip = hip::kernel(function);
  CHECK(of_hip.info().object != of_program.info().object);
  CHECK(of_hip.info().code == of_program.info().code);
  CHECK(of_hip.info().group_segment_size == of_program.info().group_segment_size);
  CHECK(of_hip.info().reads_packet == of_program.info().reads_packet);
  REQUIRE(hipModuleUnload(module) == hipSuccess);
}

TEST_CASE("functions of one name in two shared libraries are those of their own library") {
  OnDevice on;
  BatchSubmitter batch(on.queue);
  const SharedLibrary libraries[] = {SharedLibrary(UPTEMPO_KERNEL_LIBRARY),
                                     SharedLibrary(UPTEMPO_KERNEL_LIBRARY_COPY)};
  CHECK(libraries[0].function() != libraries[1].function());
  // The second one is loaded by HIP first, so that the order of loading does not decide.
  for (const uint32_t i : {1u, 0u}) {
    const auto add = Kernel<Arguments>::of(
        std::make_shared<const KernelInfo>(hip::kernel_info(libraries[i].function())));
    const uint32_t addend = 10 + i;
    const void* params[] = {&addend};
    batch.dispatch(add, Grid{1}.by(1), params);
  }
  batch.submit().wait();
  CHECK(libraries[0].total() == 10);
  CHECK(libraries[1].total() == 11);
}

TEST_CASE(
    "a kernel that hipRTC has compiled is dispatched, and its bytes may be freed afterwards") {
  OnDevice on;
  static constexpr const char* kSource =
      "extern \"C\" __global__ void twice(unsigned* words) { words[threadIdx.x] *= 2; }";
  hiprtcProgram program = nullptr;
  REQUIRE(hiprtcCreateProgram(&program, kSource, "twice.hip", 0, nullptr, nullptr) ==
          HIPRTC_SUCCESS);
  const std::string target = "--offload-arch=" + on.gpu.name();
  const char* options[] = {target.c_str()};
  REQUIRE(hiprtcCompileProgram(program, 1, options) == HIPRTC_SUCCESS);
  size_t size = 0;
  REQUIRE(hiprtcGetCodeSize(program, &size) == HIPRTC_SUCCESS);
  std::vector<char> code(size);
  REQUIRE(hiprtcGetCode(program, code.data()) == HIPRTC_SUCCESS);
  REQUIRE(hiprtcDestroyProgram(&program) == HIPRTC_SUCCESS);
  hipModule_t const module = load(code.data());
  const auto twice = hip::kernel(function_of(module, "twice"));
  code = {};
  const Device<uint32_t> words(std::vector<uint32_t>(64, 21));
  uint32_t* address = words.data();
  void* params[] = {&address};
  BatchSubmitter batch(on.queue);
  batch.dispatch(twice, Grid{64}.by(64), params);
  batch.submit().wait();
  CHECK(words.host() == std::vector<uint32_t>(64, 42));
  REQUIRE(hipModuleUnload(module) == hipSuccess);
}
