#!/usr/bin/env python3
"""Writes a C++ file with each example of the comments of the public headers, to be compiled.

  header_examples.py MANUAL INCLUDE_ROOT FILE HEADER...

An example is an indented block of a comment. Each becomes a function of its own, after the names
that it uses: COMMON, and CONTEXT of its header. SHORTENED replaces what an example leaves out: each
entry must be in the header. A line that consists of "..." is left out. In a block whose lines are
`code  description`, the code is compiled.
"""

import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import comments  # noqa: E402

# What a program has before it uses most headers. A function's own names hide these.
COMMON = """
#include <chrono>
#include <coroutine>
#include <cstdio>
#include <unistd.h>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <vector>
using namespace uptempo;
using namespace uptempo::aql;
using namespace std::chrono_literals;
namespace kernels { std::span<const std::byte> bitonic_sort(); }
extern Runtime runtime;
extern Agent gpu, agent, left_gpu, right_gpu;
extern Program program;
extern Queue queue;
extern Streams streams;
extern Stream stream, other, upload;
extern BatchSubmitter batch;
extern Recording recorded;
extern uint32_t n, steps;
extern float *x, *y, *z, dt;
extern const float* p;
extern const Kernel<float*, const float*, float, uint32_t> saxpy;
template <class... Args>
const Kernel<Args...>& kernel_of();
"""

SORT = "const auto& sort = kernel_of<uint32_t*, uint32_t, uint32_t, uint32_t>(); uint32_t stage = 0, pass = 0; extern DeviceBuffer<uint32_t> keys;"
CONTEXT = {
    "aql/deadline.hpp": "extern void publish(int, Deadline); const int packets = 0;",
    "aql/pause.hpp": "extern Deadline deadline; const auto is_there = [] { return true; };",
    "aql/shared_ring.hpp": "extern hsa_queue_t* queue; const auto emit = [](uint64_t, void*) noexcept { return 0u; };",
    "aql/writer.hpp": "extern hsa_queue_t* queue; extern Packet64 packets[120];",
    "runtime/agent.hpp": "extern void print(std::string_view, bool, std::string);",
    "runtime/owned.hpp": "extern hsa_executable_t handle;",
    "runtime/tried.hpp": "Completion last; void later(), report(std::string_view);",
    "memory/buffer.hpp": "const Agent &left = left_gpu, &right = right_gpu;",
    "memory/kernarg_placement.hpp": "extern void log(std::string);",
    "program/arguments.hpp": "float a = 2;",
    "program/grid.hpp": "struct Size { uint32_t x, y, z; }; const Size dim{4, 1, 1}; const Grid grid{256};",
    "program/kernel_object.hpp": "extern hsa_executable_symbol_t symbol; uint64_t object; extern std::span<const std::byte> note;",
    "program/kernel_start.hpp": "extern std::span<const std::byte> bytes_of_file;",
    "fences/fence_plan.hpp": "extern float* out;",
    "completion/notifier.hpp": "const uint32_t queues = 1; struct { uint64_t number() { return 1; } } request; void finish(uint64_t, bool); extern int epoll; extern epoll_event event;",
    "c/completion.h": "extern uptempo_notifier* notifier; extern uptempo_completion completion; extern uptempo_notice notice;"
                      "extern uint64_t tag, count; extern int fd; void finish(uint64_t);",
    "dispatch/pools/pressure.hpp": "void stop_accepting();",
    "dispatch/batch_submitter.hpp": SORT + "const auto& scale = kernel_of<float*, uint32_t>(); const auto& advance = kernel_of<float*, uint32_t, uint32_t>();"
                                    "extern BatchSubmitter left, right; extern const Kernel<uint32_t> step_kernel;",
    "recording/recording.hpp": "const auto& force_kernel = kernel_of<float*, float*, float>(); const auto& move_kernel = force_kernel; float* f = y;",
    "recording/recording_file.hpp": "Recording& step = recorded; extern DeviceBuffer<float> positions, forces;",
    "stream/queue/event.hpp": "Stream& compute = other;",
    "stream/copy/copy_memory.hpp": "extern DeviceBuffer<float> y;",
    "stream/stream.hpp": "extern DeviceBuffer<uint32_t> keys; extern std::vector<uint32_t> host;",
    "hip/graph.hpp": "extern hipGraphNode_t node; extern hipKernelNodeParams parameters;",
    "hip/graph_exec.hpp": "extern hipGraph_t graph; extern hipGraphNode_t node; extern hipKernelNodeParams params; extern hipStream_t stream;",
    "hip/wait.hpp": "extern hipStream_t stream; extern void* host; const size_t bytes = 4; const auto& step = kernel_of<float*>(); const Grid grid{64};",
}

# Header: pairs of a text in its examples and the text to compile in its place.
SHORTENED = {
    "aql/writer.hpp": [("!refused) ...", "!refused)")],
    "runtime/signal.hpp": [("Queue queue{gpu};", "Queue limited{gpu};")],
    "program/kernel_start.hpp": [("if (kernel.packet) ...", "if (kernel.packet) continue;")],
    "completion/notifier.hpp": [("notifier.fd(), ...)", "notifier.fd(), &event)")],
    "dispatch/batch_submitter.hpp": [("right.dispatch(step, Grid{n}, ...);", "right.dispatch(step_kernel, Grid{n}, n);")],
    "stream/queue/event.hpp": [("stream.launch(...);", "stream.launch(saxpy, Grid{n}, y, x, 2.0f, n);")],
    "hip/kernel.hpp": [("__global__ void", "void")],
    "hip/wait.hpp": [("consume<<<blocks, threads, 0, stream>>>(x);", "")],
    # `y` and `x` of the second example are vectors of the host.
    "stream/launcher.hpp": [("step.launch(stream, Grid{n}.by(64), out(y), in(x), n);",
                             "std::vector<float> y, x; const auto& two = kernel_of<float*, const float*, uint32_t>();"
                             "Launcher step{streams, two}; step.launch(stream, Grid{n}.by(64), out(y), in(x), n);")],
    "completion/awaitable.hpp": [("failed\n", "\n")],
}

# Examples that define functions, which cannot be in one.
OUTSIDE = {"completion/awaitable.hpp": """
struct Task {
  struct promise_type {
    Task get_return_object();
    std::suspend_never initial_suspend();
    std::suspend_never final_suspend() noexcept;
    void unhandled_exception();
    void return_void();
  };
};
extern void (*loop)(std::coroutine_handle<>);
"""}


def examples(text):
    """The code of the comments of a header, each example as a list of lines."""
    for block in comments.blocks_of(text):
        page = "\n".join(comments.marked_up([each.text for each in block]))
        for kind, example in re.findall(r"@code{.(cpp|unparsed)}(.*?) @end", page, re.S):
            code = example.split("\n")
            if kind == "cpp" or is_described(code):
                yield code


def is_described(code):
    """Whether each line is `code  description`; further lines of a description are indented far."""
    lines = [line for line in code if line.strip() and not re.match(r" {20}", line)]
    return all(re.search(r"[;)] +(?!//)[\w`]", line) and not comments.is_statement(line) for line in lines)


def compilable(code, shortened):
    if is_described(code):
        code = [re.sub(r"([;)]) +(?!//)[\w`].*", r"\1", line) for line in code if not re.match(r" {20}", line)]
        code = [line if line.rstrip().endswith(";") else line + ";" for line in code if line.strip()]
    text = "\n".join(line for line in code if not re.match(r"\s*\.\.\.\s*(//.*)?$", line)) + "\n"
    used = set()
    for old, new in shortened:
        if old in text:
            used.add(old)
            text = text.replace(old, new)
    return text, used


def main():
    root, out, headers = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4:]
    parts = [f"#include <{header}>\n" for header in headers] + ["#include <sys/epoll.h>\n#include <unistd.h>\n", COMMON]
    count = 0
    for header in headers:
        name = header.removeprefix("uptempo/")
        shortened, used = SHORTENED.get(name, []), set()
        for code in examples((root / header).read_text()):
            text, now = compilable(code, shortened)
            used |= now
            count += 1
            text = re.sub(r"^\s*(#include|using namespace).*$", "", text, flags=re.M)
            body = OUTSIDE[name] + text if name in OUTSIDE else f"bool run() {{\n{CONTEXT.get(name, '')}\n{{\n{text}}}\nreturn true;\n}}\n"
            parts.append(f"// {header}\nnamespace example_{count} {{\n{body}}}\n")
        unused = {old for old, _ in shortened} - used
        if unused:
            sys.exit(f"header_examples.py: no example of {header} contains {unused}")
    out.write_text("".join(parts))
    print(f"{count} examples of {len(headers)} headers")


main()
